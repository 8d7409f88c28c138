import { getElement, setText } from './elements.js';

const notice = getElement('notice', HTMLElement);

/** Shows a text above the keys. The text tells a failure unless `kind` is `good`. */
export function showNotice(text: string, kind: 'good' | '' = ''): void {
  setText(notice, text);
  notice.className = kind;
  notice.hidden = text === '';
}

/** Hides the notice of a failure. The notice of a success stays until the next notice. */
export function hideFailure(): void {
  if (notice.className === '') showNotice('');
}
