import type { InspectedEvent, InspectorState } from '../inspector-state.js';
import { createElement } from './elements.js';
import { formatTime, getBackendPrefix, shortenKey } from './texts.js';

/** Names of events that read better in other words. */
const EVENT_NAMES: Partial<Record<InspectedEvent['type'], string>> = {
  timedOut: 'timed out',
  backendFailed: 'failed',
};

/** Replaces the lines of a list by those of the events, or by `emptyText`. */
export function showEvents(
  list: HTMLElement,
  state: InspectorState,
  events: readonly InspectedEvent[],
  emptyText: string,
): void {
  const lines = events.map((event) => createEventLine(state, event));
  list.replaceChildren(...(lines.length > 0 ? lines : [createElement('li', { className: 'quiet' }, emptyText)]));
}

export function createEventLine(state: InspectorState, event: InspectedEvent): HTMLLIElement {
  const { type, at, backend, key, fencingToken, detail = '', times } = event;
  const line = createElement(
    'li',
    {},
    createElement('time', { dateTime: at }, formatTime(at)),
    createElement('b', {}, EVENT_NAMES[type] ?? type),
    ` ${getBackendPrefix(state, backend)}`,
    ...(key === undefined ? [] : [createElement('code', {}, shortenKey(key)), ' ']),
    fencingToken === undefined ? '' : `token ${fencingToken} `,
    detail,
    times > 1 ? ` (${times} times)` : '',
  );
  line.dataset['type'] = type;
  return line;
}
