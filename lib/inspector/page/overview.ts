import type { InspectorState } from '../inspector-state.js';
import { createElement, getElement, setText } from './elements.js';
import { showEvents } from './event-list.js';
import { formatDuration, getBackendPrefix } from './texts.js';

const MAX_TEMPLATES = 100;

/** Shows everything but the keys: backends, contention by template, history and troubles. */
export function showOverview(state: InspectorState): void {
  showBackends(state);
  showTemplates(state);
  showTroubles(state);
  const history = getElement('history', HTMLElement);
  showEvents(history, state, state.history, 'Nothing happened here in the last five minutes.');
  setText(getElement('process', HTMLElement), `${state.host}:${state.pid}`);
}

export function showTroubles(state: InspectorState): void {
  const list = getElement('troubles', HTMLElement);
  showEvents(list, state, state.troubles, 'Nothing was lost and nobody gave up.');
}

function showBackends({ backends }: InspectorState): void {
  const chips = backends.map(({ name, kind, guarantee, health }) => {
    const text = `${name} · ${kind}, ${guarantee} · ${health.status}`;
    const chip = createElement('li', { title: health.detail ?? '' }, text);
    chip.dataset['state'] = health.status;
    return chip;
  });
  getElement('backends', HTMLElement).replaceChildren(...chips);
}

function showTemplates(state: InspectorState): void {
  const templates = state.backends.flatMap((backend) =>
    backend.templates.map((template) => ({ ...template, prefix: getBackendPrefix(state, backend.name) })),
  );
  const rows = templates
    .slice(0, MAX_TEMPLATES)
    .map((template) =>
      createElement(
        'tr',
        {},
        createElement('td', { className: 'key' }, template.prefix + template.template),
        createElement('td', {}, String(template.acquired)),
        createElement('td', {}, formatDuration(template.meanWaitMs)),
        createElement('td', {}, formatDuration(template.longestWaitMs)),
        createElement('td', {}, formatDuration(template.meanHoldMs)),
        showBadCount(createElement('td'), template.timedOut),
        showBadCount(createElement('td'), template.lost),
      ),
    );
  getElement('template-rows', HTMLElement).replaceChildren(...rows);
  getElement('templates', HTMLElement).hidden = rows.length === 0;
  getElement('no-template', HTMLElement).hidden = rows.length > 0;
  showBadCount(
    getElement('lost', HTMLElement),
    templates.reduce((sum, { lost }) => sum + lost, 0),
  );
  showBadCount(
    getElement('timed-out', HTMLElement),
    templates.reduce((sum, { timedOut }) => sum + timedOut, 0),
  );
}

/** Shows a count that should be zero, and marks it where it is not. */
function showBadCount<T extends HTMLElement>(element: T, count: number): T {
  setText(element, String(count));
  element.className = count > 0 ? 'bad' : '';
  return element;
}
