import type { InspectedEvent, InspectorState } from '../inspector-state.js';
import type { ListedKey } from './listed-key.js';

/** Path of the page, below which the other routes of the inspector are. */
const BASE_PATH = location.pathname.replace(/\/+$/u, '');

/** Milliseconds after which a stream that the browser has given up is opened anew. */
const RECONNECTION_MS = 2_000;

/** Reads the state of all backends. @throws Error when the application does not answer, or refuses */
export async function readState(search: string, signal: AbortSignal): Promise<InspectorState> {
  const url = `${BASE_PATH}/state?search=${encodeURIComponent(search)}`;
  const response = await fetch(url, { cache: 'no-store', signal });
  if (!response.ok) throw new Error(`The application answers ${response.status}`);
  return response.json();
}

/**
 * Calls `onTrouble` for every trouble, and `onConnection` when the stream of events connects or breaks. Reconnects also
 * after an answer such as 502, after which browsers do not reconnect by themselves.
 */
export function followTroubles(
  onTrouble: (trouble: InspectedEvent) => void,
  onConnection: (isConnected: boolean) => void,
): void {
  const source = new EventSource(`${BASE_PATH}/events`);
  source.addEventListener('open', () => onConnection(true));
  source.addEventListener('error', () => {
    onConnection(false);
    if (source.readyState === EventSource.CLOSED)
      setTimeout(() => followTroubles(onTrouble, onConnection), RECONNECTION_MS);
  });
  source.addEventListener('message', ({ data }) => onTrouble(JSON.parse(data)));
}

/** Takes a key from its owner. Returns the reason why the application refused, `undefined` when the key is free. */
export async function evictOwner({ backend, key }: ListedKey, owner: string): Promise<string | undefined> {
  const response = await fetch(`${BASE_PATH}/evict`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ backend, key, owner }),
  });
  if (response.ok) return undefined;
  const { message }: { message?: string } = await response.json().catch(() => ({}));
  return message ?? String(response.status);
}
