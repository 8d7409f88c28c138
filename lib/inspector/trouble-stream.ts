import type { Writable } from 'node:stream';
import { isClosed, onResponseEnd } from '../nest/requests/raw-response.js';
import type { LockInspector } from './lock-inspector.js';

/** Bytes that a client of the event stream may leave unread before it is disconnected. Browsers then reconnect. */
const MAX_UNREAD_BYTES = 1_000_000;
/** Interval of comments in the stream. Proxies such as nginx end an answer that is silent for 60 seconds. */
const HEARTBEAT_MS = 25_000;

/** Writes every trouble as a server-sent event, until the client goes or the application ends. */
export function streamTroubles(inspector: Pick<LockInspector, 'followTroubles'>, response: Writable): void {
  // The client may have gone while a guard decided.
  if (isClosed(response)) return;
  const write = (text: string): void => {
    if (response.writableLength > MAX_UNREAD_BYTES) response.destroy();
    else response.write(text);
  };
  const endStream = (): void => {
    stopWriting();
    response.end();
  };
  const stopFollowing = inspector.followTroubles((trouble) => write(`data: ${JSON.stringify(trouble)}\n\n`), endStream);
  const heartbeat = setInterval(() => write(':\n\n'), HEARTBEAT_MS).unref();
  const stopWriting = (): void => {
    stopFollowing();
    clearInterval(heartbeat);
  };
  onResponseEnd(response, stopWriting);
  response.on('error', stopWriting);
  write('retry: 2000\n\n');
}
