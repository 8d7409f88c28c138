/** Returns the element of page.html with this id. @throws TypeError when there is none of this type */
export function getElement<T extends HTMLElement>(id: string, type: new () => T): T {
  const element = document.getElementById(id);
  if (element instanceof type) return element;
  throw new TypeError(`The page has no ${type.name} ${id}`);
}

/** Creates an element. Children that are strings become text nodes: a key is never read as markup. */
export function createElement<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  properties: Partial<HTMLElementTagNameMap[Name]> = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[Name] {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
}

/** Sets the text of an element, and leaves an equal text alone, so that a selection in it lasts. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
