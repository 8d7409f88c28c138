import type { ReportedHealth } from '../../../core/index.js';
import { isErrorReply, toLoggableError } from '../error.js';
import type { RedisClient } from './redis-client.js';

/** Channel on which a server tells one connection which keys have changed. */
export const CHANGES_CHANNEL = '__redis__:invalidate';

/**
 * State that all lock services on one client of the application share. The server sends the messages of a connection to one
 * listener, which passes them on to all.
 */
interface ClientTracking {
  readonly users: Set<KeyTracking>;
  /** User whose listener gets the messages, and its number. */
  receiver: KeyTracking | undefined;
  listenerId: string | undefined;
}

class TrackedByApplicationError extends Error {
  constructor() {
    super('the application tracks keys on the given client itself');
  }
}

const trackingByClient = new WeakMap<RedisClient, ClientTracking>();

function trackingOf(client: RedisClient): ClientTracking {
  const existing = trackingByClient.get(client);
  if (existing) return existing;
  const tracking = { users: new Set<KeyTracking>(), receiver: undefined, listenerId: undefined };
  trackingByClient.set(client, tracking);
  return tracking;
}

/**
 * Has the server tell this process when a key changes that it has renewed:
 * https://redis.io/docs/latest/develop/reference/client-side-caching/. Another connection than that for the commands gets
 * the messages, because the protocol of most clients knows no others. Renewals alone are tracked: acquisitions and
 * releases cost nothing more.
 *
 * A message is a hint: it also comes when the server forgets a key for lack of space. It comes once for each renewal.
 */
export class KeyTracking {
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
    const tracking = this.#trackedClient && trackingOf(this.#trackedClient);
    this.#trackedClient = undefined;
    tracking?.users.delete(this);
    if (tracking?.receiver !== this) return;
    tracking.receiver = undefined;
    for (const user of tracking.users) user.#takeOver();
  }

  /** @param names texts or buffers; `null` for all keys */
  readonly onMessage = (channel: unknown, names: unknown): void => {
    if (String(channel) !== CHANGES_CHANNEL) return;
    const users = this.#trackedClient ? trackingOf(this.#trackedClient).users : [this];
    for (const user of users) {
      if (!Array.isArray(names)) user.#onChange?.(undefined);
      else for (const name of names) user.#onChange?.(String(name));
    }
  };

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
      if (listenerId !== '-1' && listenerId !== trackingOf(client).listenerId) throw new TrackedByApplicationError();
      this.#track(client, id);
      // Renewals were not tracked meanwhile.
      this.#onChange?.(undefined);
    } catch (error) {
      if (isCurrent()) this.#onTrackingError(error);
    }
  }

  #track(client: RedisClient, id: string): void {
    this.#isTracked = true;
    const tracking = trackingOf(client);
    tracking.users.add(this);
    tracking.receiver = this;
    tracking.listenerId = id;
    const onSuccess = (): void => this.health.setAdvice('tracking', undefined);
    client
      .call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'OPTIN', 'NOLOOP')
      .then(onSuccess, (error: unknown) => id === this.#listenerId && this.#onTrackingError(error));
  }

  /** Has the next renewals name this listener instead of one that has stopped. */
  #takeOver(): void {
    this.#isTracked = false;
    this.#knownListenerId = undefined;
    this.#onChange?.(undefined);
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
    const consequence = 'a holder whose key is deleted learns of it with its next renewal';
    this.health.setAdvice('tracking', `${consequence}, because CLIENT TRACKING was refused: ${message}`);
  }
}
