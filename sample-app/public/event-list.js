const SHOWN = 200;

/** The events as text, newest first. What buyers call themselves is text content, never markup. */
export class EventList {
  #list;

  constructor(list) {
    this.#list = list;
  }

  clear() {
    this.#list.replaceChildren();
  }

  add({ at, kind, key = '', token, detail = '' }) {
    const row = document.createElement('li');
    row.className = kind;
    row.append(
      element('time', timeOf(at)),
      element('b', kind),
      element('code', token ? `…${token.slice(-12)}` : ''),
      element('span', [key, detail].filter(Boolean).join(' · ')),
    );
    this.#list.prepend(row);
    while (this.#list.childElementCount > SHOWN) this.#list.lastElementChild.remove();
  }
}

function element(name, text) {
  const made = document.createElement(name);
  made.textContent = text;
  return made;
}

function timeOf(at) {
  const date = new Date(at);
  return `${date.toLocaleTimeString('en-GB')}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
