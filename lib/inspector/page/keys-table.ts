import type { InspectorState } from '../inspector-state.js';
import { getElement, setText } from './elements.js';
import { KeyRow } from './key-row.js';
import { countWaiters, type ListedKey, listKeys } from './listed-key.js';

/** Table of the keys that match the search in all backends, with its counts and its notes. */
export class KeysTable {
  readonly #search = getElement('search', HTMLInputElement);
  readonly #order = getElement('sort', HTMLSelectElement);
  readonly #body = getElement('key-rows', HTMLTableSectionElement);
  readonly #notes = getElement('empty', HTMLElement);
  readonly #held = getElement('held', HTMLElement);
  readonly #waiting = getElement('waiting', HTMLElement);
  readonly #expandedIds = new Set<string>();
  #rows = new Map<string, KeyRow>();

  /** @param onToggle called when the user expands or collapses a key; must call `show` */
  constructor(
    private readonly onToggle: () => void,
    private readonly onFree: (entry: ListedKey, row: HTMLElement) => void,
  ) {}

  show(state: InspectorState): void {
    const entries = listKeys(state, this.#search.value, this.#order.value);
    const shownRows = new Map<string, KeyRow>();
    const elements = entries.flatMap((entry) => {
      const id = JSON.stringify([entry.backend, entry.key]);
      const row = this.#rows.get(id) ?? new KeyRow(entry, () => this.#toggle(id), this.onFree);
      shownRows.set(id, row);
      return row.show(state, entry, this.#expandedIds.has(id));
    });
    this.#rows = shownRows;
    placeRows(this.#body, elements);
    const hasMore = state.backends.some(({ more }) => more);
    setText(
      this.#held,
      entries.filter(({ holder, here }) => holder ?? here).length.toLocaleString() + (hasMore ? '+' : ''),
    );
    setText(this.#waiting, entries.reduce((sum, entry) => sum + countWaiters(entry), 0).toLocaleString());
    const notes = this.#describeGaps(state, entries.length);
    setText(this.#notes, notes);
    this.#notes.hidden = notes === '';
  }

  #toggle(id: string): void {
    if (!this.#expandedIds.delete(id)) this.#expandedIds.add(id);
    this.onToggle();
  }

  /** Returns the reasons why keys may be missing from the table, or an empty text. */
  #describeGaps({ backends }: InspectorState, entryCount: number): string {
    const backendsWithoutList = backends.filter(({ lists }) => !lists).map(({ name }) => name);
    const notes = [];
    if (entryCount === 0)
      notes.push(this.#search.value === '' ? 'No key is held.' : 'No key that is held contains this.');
    if (backends.some(({ more }) => more)) notes.push('There are more keys: find one by a part of its name.');
    if (backendsWithoutList.length > 0) {
      notes.push(`No server lists the keys of ${backendsWithoutList.join(', ')}: those of this process are shown.`);
      notes.push('Find another by its whole name.');
    }
    return notes.join(' ');
  }
}

/** Moves only rows that are out of place, and gives the focus back to an element that was moved. */
function placeRows(body: HTMLElement, rows: readonly HTMLElement[]): void {
  const focusedElement = document.activeElement;
  for (const [index, row] of rows.entries()) {
    const presentRow = body.children.item(index);
    if (presentRow !== row) body.insertBefore(row, presentRow);
  }
  while (body.children.length > rows.length) body.lastElementChild?.remove();
  if (focusedElement instanceof HTMLElement && focusedElement.isConnected && document.activeElement !== focusedElement)
    focusedElement.focus();
}
