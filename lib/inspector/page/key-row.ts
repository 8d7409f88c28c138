import type { InspectedParty, InspectorState } from '../inspector-state.js';
import { createElement, setText } from './elements.js';
import { createEventLine } from './event-list.js';
import { countWaiters, type ListedKey, measureHold } from './listed-key.js';
import {
  describeParty,
  describeProcess,
  describeShare,
  escapeKey,
  formatDuration,
  isLongKey,
  shortenKey,
} from './texts.js';

const MAX_EVENTS = 30;

/**
 * Table row of one key, and a second row with details while the key is expanded. The table reuses this object while the
 * key is listed, so that the row keeps the focus.
 */
export class KeyRow {
  readonly element: HTMLTableRowElement;
  readonly #keyButton = createElement('button', { type: 'button', className: 'key' });
  readonly #freeButton = createElement('button', { type: 'button', className: 'free' }, 'Free …');
  readonly #cells = {
    holder: createCell('holder'),
    held: createCell('held'),
    left: createCell('left'),
    token: createCell('token'),
    waiting: createCell('waiting'),
  };
  #details: HTMLTableRowElement | undefined;

  constructor(
    private entry: ListedKey,
    onToggle: () => void,
    onFree: (entry: ListedKey, row: HTMLElement) => void,
  ) {
    this.element = createElement(
      'tr',
      {},
      createElement('td', {}, this.#keyButton),
      ...Object.values(this.#cells),
      createElement('td', {}, this.#freeButton),
    );
    this.#keyButton.addEventListener('click', onToggle);
    this.#freeButton.addEventListener('click', () => onFree(this.entry, this.element));
  }

  /** Updates the row. Returns this row and, while the key is expanded, the row with details. */
  show(state: InspectorState, entry: ListedKey, isExpanded: boolean): HTMLTableRowElement[] {
    const { key, prefix, template, holder, here: ownHold } = entry;
    const { held, left, token, waiting } = this.#cells;
    const isInDoubt = ownHold !== undefined && ownHold.state !== 'held';
    this.entry = entry;
    setText(this.#keyButton, prefix + shortenKey(key));
    this.#keyButton.title = template;
    this.#keyButton.ariaExpanded = String(isExpanded);
    setText(this.#cells.holder, describeHolders(entry));
    setText(held, formatDuration(measureHold(entry, state.at)));
    setText(left, isInDoubt ? ownHold.state : formatDuration(holder?.leftMs));
    left.className = isInDoubt ? 'bad' : '';
    setText(token, ownHold?.fencingToken ?? holder?.fencingToken ?? '–');
    setText(waiting, String(countWaiters(entry)));
    waiting.className = countWaiters(entry) > 0 ? 'contended' : 'quiet';
    this.#freeButton.hidden = !holder;
    this.#freeButton.ariaLabel = `Free ${shortenKey(key)} …`;
    const details = isExpanded ? createElement('tr', {}, createDetails(state, entry)) : undefined;
    if (details) this.#details?.replaceWith(details);
    else this.#details?.remove();
    this.#details = details;
    return details ? [this.element, details] : [this.element];
  }
}

function createCell(label: string): HTMLTableCellElement {
  const cell = createElement('td', { className: label === 'token' ? 'token' : '' });
  cell.dataset['label'] = label;
  return cell;
}

function describeHolders({ holder, holders = [], here }: ListedKey): string {
  if (!holder) return here ? 'this process' : 'nobody';
  const others = holders.length > 1 ? ` and ${holders.length - 1} more` : '';
  return describeProcess(holder) + others + describeShare(holder) + (here?.leads ? ' · leads' : '');
}

function createDetails(state: InspectorState, entry: ListedKey): HTMLTableCellElement {
  const { backend, key, template, holder, holders, waiters } = entry;
  const events = [...state.troubles, ...state.history]
    .filter((event) => event.backend === backend && event.key === key)
    .toSorted((a, b) => (a.at < b.at ? 1 : -1));
  const identityText = `template ${shortenKey(template)}${holder ? `, owner ${holder.owner}` : ''}`;
  const cell = createElement('td', { className: 'details', colSpan: 7 });
  if (isLongKey(key))
    cell.append(createElement('p', {}, createElement('code', { className: 'whole' }, escapeKey(key))));
  cell.append(createElement('p', { className: 'quiet' }, identityText));
  if (holders) {
    const leftTexts = holders.map((one) => `${describeParty(one)}, ${formatDuration(one.leftMs)} left`);
    appendList(cell, 'Held by', leftTexts.map(createLine));
  }
  appendList(
    cell,
    waiters.length > 0 ? 'Waiting, first come first' : 'Nobody waits on the server',
    waiters.map((waiter) => createLine(describeParty(waiter) + describeWait(waiter, state.at))),
  );
  if (events.length > 0) {
    const lines = events.slice(0, MAX_EVENTS).map((event) => createEventLine(state, event));
    appendList(cell, 'History', lines);
  }
  return cell;
}

function describeWait({ since }: InspectedParty, now: string): string {
  return since === undefined ? '' : `, ${formatDuration(Date.parse(now) - Date.parse(since))}`;
}

function createLine(text: string): HTMLLIElement {
  return createElement('li', {}, text);
}

function appendList(cell: HTMLElement, title: string, lines: readonly HTMLLIElement[]): void {
  cell.append(createElement('b', {}, title), createElement('ol', {}, ...lines));
}
