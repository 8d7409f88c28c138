import type { ReportedHealth } from '../../../core/index.js';
import { isErrorReply, toLoggableError } from '../error.js';
import type { RedisClient } from './redis-client.js';
import { SharedTracking, type TrackingUser } from './shared-tracking.js';

/** Channel on which a server tells one connection which keys have changed. */
export const CHANGES_CHANNEL = '__redis__:invalidate';
/** Consequence of a server that does not tell of changes, for health. */
export const LATE_LOSS = 'a holder whose key is deleted learns of it with its next renewal';

class TrackedByApplicationError extends Error {
  constructor() {
    super('the application tracks keys on the given client itself');
  }
}

/**
 * Has the server tell this process when a key changes that it has renewed:
 * https://redis.io/docs/latest/develop/reference/client-side-caching/. Another connection than that for the commands gets
 * the messages, because the protocol of most clients knows no others. Renewals alone are tracked: acquisitions and
 * releases cost nothing more.
 *
 * A message is a hint: it also comes when the server forgets a key for lack of space. It comes once for each renewal.
 */
export class KeyTracking implements TrackingUser {
  /** Connection that gets the messages, and its number while it listens. */
  #listener: RedisClient | undefined;
  #listenerId: string | undefined;
  /** Connection for commands, and the number of the listener that the server knows for it. */
  #trackedClient: RedisClient | undefined;
  #knownListenerId: string | undefined;
  #isTracked = false;
  #isRefused = false;
  #onChange: ((name: string | undefined) => void) | undefined;

  constructor(
    private readonly health: ReportedHealth,
    /** Whether the connection for commands belongs to the application, which may track keys on it for a cache. */
    private readonly isClientGiven = false,
  ) {}

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
    this.#listener = client;
    try {
      const [id] = await Promise.all([client.call('client', 'id'), client.call('subscribe', CHANGES_CHANNEL)]);
      if (client !== this.#listener) return;
      this.#isRefused = false;
      this.#listenerId = String(id);
      // Earlier renewals were not tracked.
      this.#onChange?.(undefined);
    } catch (error) {
      if (client === this.#listener) this.#refuse(error);
    }
  }

  /** Ends the tracking if `client` is what listens: another one may have taken its place already. */
  stopListening(client: RedisClient): void {
    if (client === this.#listener) this.#stop();
  }

  #stop(): void {
    this.#listener = undefined;
    this.#listenerId = undefined;
    this.#isTracked = false;
    const client = this.#trackedClient;
    this.#trackedClient = undefined;
    if (client) SharedTracking.of(client).remove(this);
  }

  /** @param names texts or buffers; `null` for all keys */
  readonly onMessage = (channel: unknown, names: unknown): void => {
    if (String(channel) !== CHANGES_CHANNEL) return;
    const users = this.#trackedClient ? SharedTracking.of(this.#trackedClient).users : [this];
    for (const user of users) {
      if (!Array.isArray(names)) user.onChange(undefined);
      else for (const name of names) user.onChange(String(name));
    }
  };

  onChange(name: string | undefined): void {
    this.#onChange?.(name);
  }

  trackAnew(): void {
    this.#isTracked = false;
    this.#knownListenerId = undefined;
    this.onChange(undefined);
  }

  /** Tells the server of the listener, before the first commands of a connection. */
  prepare(client: RedisClient): void {
    const id = this.#listenerId;
    if (id === undefined || (client === this.#trackedClient && id === this.#knownListenerId)) return;
    this.#trackedClient = client;
    this.#knownListenerId = id;
    this.#isTracked = false;
    if (this.isClientGiven) void this.#trackGiven(client, id);
    else this.#track(client, id);
  }

  /** Has the server track the keys that the next command of the connection reads. */
  trackNextCommand(client: RedisClient): void {
    if (client !== this.#trackedClient || !this.#isTracked) return;
    client.call('CLIENT', 'CACHING', 'YES').catch((error: unknown) => {
      if (this.#isTracked && isErrorReply(error)) this.#refuse(error);
    });
  }

  /** Tracks keys on a client of the application, unless the application does: its own messages would no longer reach it. */
  async #trackGiven(client: RedisClient, id: string): Promise<void> {
    const isCurrent = (): boolean => client === this.#trackedClient && id === this.#listenerId;
    try {
      const listenerId = String(await client.call('CLIENT', 'GETREDIR'));
      if (!isCurrent()) return;
      if (listenerId !== '-1' && listenerId !== SharedTracking.of(client).listenerId)
        throw new TrackedByApplicationError();
      this.#track(client, id);
      // Renewals were not tracked meanwhile.
      this.#onChange?.(undefined);
    } catch (error) {
      if (isCurrent()) this.#onTrackingError(error);
    }
  }

  #track(client: RedisClient, id: string): void {
    this.#isTracked = true;
    SharedTracking.of(client).add(this, id);
    const onSuccess = (): void => this.health.setAdvice('tracking', undefined);
    client
      .call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'OPTIN', 'NOLOOP')
      .then(onSuccess, (error: unknown) => id === this.#listenerId && this.#onTrackingError(error));
  }

  /** A connection that is lost says nothing about tracking: the next commands try again. */
  #onTrackingError(error: unknown): void {
    if (isErrorReply(error) || error instanceof TrackedByApplicationError) this.#refuse(error);
    else {
      this.#knownListenerId = undefined;
      this.#isTracked = false;
    }
  }

  /** Ends the tracking until a connection listens anew. */
  #refuse(error: unknown): void {
    this.#stop();
    this.#isRefused = true;
    const { message } = toLoggableError(error);
    this.health.setAdvice('tracking', `${LATE_LOSS}, because CLIENT TRACKING was refused: ${message}`);
  }
}
