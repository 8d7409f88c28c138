import type { ReportedHealth } from '../../../core/index.js';
import { toLoggableError } from '../error.js';
import type { RedisClient } from './redis-client.js';

/** Channel on which a server tells one connection which keys have changed. */
export const CHANGES_CHANNEL = '__redis__:invalidate';

/**
 * Has the server tell this process when a key changes that it has renewed:
 * https://redis.io/docs/latest/develop/reference/client-side-caching/. Another connection than that for the commands gets
 * the messages, because the protocol of most clients knows no others. Renewals alone are tracked: acquisitions and
 * releases cost nothing more.
 *
 * A message is a hint: it also comes when the server forgets a key for lack of space. It comes once for each renewal.
 */
export class KeyTracking {
  /** Number of the connection that gets the messages, while it listens. */
  #listenerId: string | undefined;
  /** Connection for commands, and the number of the listener that the server knows for it. */
  #trackedClient: RedisClient | undefined;
  #knownListenerId: string | undefined;
  #isRefused = false;
  #onChange: ((name: string | undefined) => void) | undefined;

  constructor(private readonly health: ReportedHealth) {}

  /** Whether keys are to be tracked. */
  get isWanted(): boolean {
    return this.#onChange !== undefined;
  }

  /** Whether keys are tracked, or will be as soon as a connection listens. */
  get isPossible(): boolean {
    return this.isWanted && !this.#isRefused;
  }

  get isListening(): boolean {
    return this.#listenerId !== undefined;
  }

  /** @param onChange called with the name of a key that has changed; `undefined` stands for any key */
  start(onChange: (name: string | undefined) => void): void {
    this.#onChange = onChange;
  }

  /** Has `client` get the messages, which is connected and has subscribed to nothing yet. Never rejects. */
  async listen(client: RedisClient): Promise<void> {
    try {
      const [id] = await Promise.all([client.call('client', 'id'), client.call('subscribe', CHANGES_CHANNEL)]);
      this.#isRefused = false;
      this.#listenerId = String(id);
      // Earlier renewals were not tracked.
      this.#onChange?.(undefined);
    } catch (error) {
      this.#refuse(error);
    }
  }

  stopListening(): void {
    this.#listenerId = undefined;
  }

  /** @param names texts or buffers; `null` for all keys */
  readonly onMessage = (channel: unknown, names: unknown): void => {
    if (String(channel) !== CHANGES_CHANNEL) return;
    if (!Array.isArray(names)) this.#onChange?.(undefined);
    else for (const name of names) this.#onChange?.(String(name));
  };

  /** Tells the server of the listener, before the first commands of a connection. */
  prepare(client: RedisClient): void {
    const id = this.#listenerId;
    if (id === undefined || (client === this.#trackedClient && id === this.#knownListenerId)) return;
    this.#trackedClient = client;
    this.#knownListenerId = id;
    const onSuccess = (): void => this.health.setAdvice('tracking', undefined);
    client
      .call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'OPTIN', 'NOLOOP')
      .then(onSuccess, (error: unknown) => this.#refuse(error));
  }

  /** Has the server track the keys that the next command of the connection reads. */
  trackNextCommand(client: RedisClient): void {
    if (client !== this.#trackedClient || this.#listenerId === undefined) return;
    client.call('CLIENT', 'CACHING', 'YES').catch(() => undefined);
  }

  /** Ends the tracking until a connection listens anew. */
  #refuse(error: unknown): void {
    this.stopListening();
    this.#isRefused = true;
    const { message } = toLoggableError(error);
    const consequence = 'a holder whose key is deleted learns of it with its next renewal';
    this.health.setAdvice('tracking', `${consequence}, because CLIENT TRACKING was refused: ${message}`);
  }
}
