import type { InspectedEvent, InspectorState } from '../inspector-state.js';
import { followTroubles, readState } from './client.js';
import { getElement, setText } from './elements.js';
import { freeKey } from './freeing.js';
import { KeysTable } from './keys-table.js';
import type { ListedKey } from './listed-key.js';
import { hideFailure, showNotice } from './notice.js';
import { showOverview, showTroubles } from './overview.js';
import { describeError } from './texts.js';

const REFRESH_MS = 2_000;
/** Minimum ratio of the pause after an answer to the time that the answer took. A slow server gets fewer requests. */
const REST_FACTOR = 5;
/** Milliseconds without a keystroke after which the search is sent to the server. */
const TYPING_PAUSE_MS = 250;

const search = getElement('search', HTMLInputElement);
const connection = getElement('connection', HTMLElement);
const table = new KeysTable(showKeys, (entry, row) => void freeAndRefresh(entry, row));
let state: InspectorState | undefined;
let readingController = new AbortController();
let refreshTimer: ReturnType<typeof setTimeout> | undefined;

/** Reads and shows the state. Repeats this after a pause, while the page is visible. */
async function refresh(): Promise<void> {
  clearTimeout(refreshTimer);
  readingController.abort();
  readingController = new AbortController();
  const { signal } = readingController;
  const startMs = performance.now();
  try {
    state = await readState(search.value, signal);
    showKeys();
    showOverview(state);
    showErrors(state);
  } catch (error) {
    if (signal.aborted) return;
    showNotice(describeError(error));
  }
  const restMs = Math.max(REFRESH_MS, REST_FACTOR * (performance.now() - startMs));
  refreshTimer = setTimeout(refreshIfVisible, restMs);
}

function refreshIfVisible(): void {
  if (!document.hidden) void refresh();
}

function showKeys(): void {
  if (state) table.show(state);
}

function showErrors({ backends }: InspectorState): void {
  const errors = backends.flatMap(({ name, error }) => (error ? [`${name}: ${error}`] : []));
  if (errors.length > 0) showNotice(errors.join('\n'));
  else hideFailure();
}

async function freeAndRefresh(entry: ListedKey, row: HTMLElement): Promise<void> {
  if (!(await freeKey(entry))) return;
  if (!row.isConnected) search.focus();
  await refresh();
}

/** Shows a new trouble. A trouble that happened again replaces the newest line. */
function addTrouble(trouble: InspectedEvent): void {
  if (!state) return;
  const others = trouble.times > 1 ? state.troubles.slice(1) : state.troubles;
  state = { ...state, troubles: [trouble, ...others] };
  showTroubles(state);
}

function showConnection(isConnected: boolean): void {
  setText(connection, isConnected ? 'live' : 'no connection');
  connection.dataset['state'] = isConnected ? 'live' : 'lost';
}

/** Moves the focus to the search when the user presses `/` outside of fields and of the dialog. */
function focusSearch(event: KeyboardEvent): void {
  const isTyping = event.target instanceof Element && event.target.matches('input, select');
  if (event.key !== '/' || isTyping || getElement('confirm', HTMLDialogElement).open) return;
  event.preventDefault();
  search.focus();
}

search.addEventListener('input', () => {
  showKeys();
  clearTimeout(refreshTimer);
  refreshTimer = setTimeout(() => void refresh(), TYPING_PAUSE_MS);
});
getElement('sort', HTMLSelectElement).addEventListener('change', showKeys);
document.addEventListener('visibilitychange', refreshIfVisible);
document.addEventListener('keydown', focusSearch);
followTroubles(addTrouble, showConnection);
void refresh();
