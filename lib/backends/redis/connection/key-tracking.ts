import type { ReportedHealth } from '../../../core/index.js';
import { isErrorReply, toLoggableError } from '../error.js';
import type { RedisClient } from './redis-client.js';
import { SharedTracking, type TrackingSharer } from './shared-tracking.js';

/** Channel on which a server tells one connection which keys have changed. */
export const CHANGES_CHANNEL = '__redis__:invalidate';
/** Part of an advice: the consequence when the server does not report changed keys. */
export const NO_TRACKING_CONSEQUENCE = 'a holder whose key is deleted learns of it with its next renewal';

/** Reply of `CLIENT GETREDIR` on a connection without tracking. */
const NOT_TRACKING = '-1';

class TrackedByApplicationError extends Error {
  constructor() {
    super('the application tracks keys on the given client itself');
  }
}

/**
 * Has the server track the keys that this process renews, and report when one of them changes. The reports go to a second
 * connection, because RESP2 cannot mix them with replies. Acquisitions and releases are not tracked, and cost nothing more.
 * https://redis.io/docs/latest/develop/reference/client-side-caching/
 *
 * A report is only a hint: the server also sends it when it stops tracking a key for lack of space. Each renewal yields at
 * most one report.
 */
export class KeyTracking implements TrackingSharer {
  /** Connection that gets the reports. */
  #listener: RedisClient | undefined;
  /** The `CLIENT ID` of the listener, once it has subscribed. */
  #listenerId: string | undefined;
  /** Connection for commands, whose keys are tracked. */
  #trackedClient: RedisClient | undefined;
  /** The `CLIENT ID` of the listener that was last announced on that connection. */
  #announcedListenerId: string | undefined;
  #isTracking = false;
  #isRefused = false;
  #onChange: ((name: string | undefined) => void) | undefined;

  constructor(
    private readonly health: ReportedHealth,
    /** Whether the connection for commands is the application's, which may track keys on it for a cache of its own. */
    private readonly isApplicationClient = false,
  ) {}

  /** Whether a store has asked for tracking. */
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

  /** Makes `client` the listener. It must be connected, and must not have subscribed yet. Never rejects. */
  async listen(client: RedisClient): Promise<void> {
    this.#listener = client;
    try {
      const [id] = await Promise.all([client.call('client', 'id'), client.call('subscribe', CHANGES_CHANNEL)]);
      if (client !== this.#listener) return;
      this.#isRefused = false;
      this.#listenerId = String(id);
      // Earlier renewals were not tracked: any key may have changed.
      this.#onChange?.(undefined);
    } catch (error) {
      if (client === this.#listener) this.#onRefusal(error);
    }
  }

  /** Ends the tracking if `client` is still the listener. */
  stopListening(client: RedisClient): void {
    if (client === this.#listener) this.#stop();
  }

  #stop(): void {
    this.#listener = undefined;
    this.#listenerId = undefined;
    this.#isTracking = false;
    const client = this.#trackedClient;
    this.#trackedClient = undefined;
    if (client) SharedTracking.of(client).remove(this);
  }

  /** @param names texts or buffers; `null` for all keys */
  readonly onMessage = (channel: unknown, names: unknown): void => {
    if (String(channel) !== CHANGES_CHANNEL) return;
    // Several services may share the client. One of their listeners gets the reports for all.
    const sharers = this.#trackedClient ? SharedTracking.of(this.#trackedClient).sharers : [this];
    for (const sharer of sharers) {
      if (!Array.isArray(names)) sharer.onChange(undefined);
      else for (const name of names) sharer.onChange(String(name));
    }
  };

  onChange(name: string | undefined): void {
    this.#onChange?.(name);
  }

  /** Has the next command announce the listener, because another service's listener has stopped. */
  announceAgain(): void {
    this.#isTracking = false;
    this.#announcedListenerId = undefined;
    this.onChange(undefined);
  }

  /** Tells the server which connection listens, before the first commands of `client`. */
  announceListener(client: RedisClient): void {
    const id = this.#listenerId;
    if (id === undefined || (client === this.#trackedClient && id === this.#announcedListenerId)) return;
    this.#trackedClient = client;
    this.#announcedListenerId = id;
    this.#isTracking = false;
    if (this.isApplicationClient) void this.#trackApplicationClient(client, id);
    else this.#startTracking(client, id);
  }

  /** Has the server track the keys that the next command of the connection reads. */
  trackNextCommand(client: RedisClient): void {
    if (client !== this.#trackedClient || !this.#isTracking) return;
    client.call('CLIENT', 'CACHING', 'YES').catch((error: unknown) => {
      if (this.#isTracking && isErrorReply(error)) this.#onRefusal(error);
    });
  }

  /** Tracks keys on a client of the application, unless the application tracks keys itself and would miss its reports. */
  async #trackApplicationClient(client: RedisClient, id: string): Promise<void> {
    const isCurrent = (): boolean => client === this.#trackedClient && id === this.#listenerId;
    try {
      const redirectId = String(await client.call('CLIENT', 'GETREDIR'));
      if (!isCurrent()) return;
      if (redirectId !== NOT_TRACKING && redirectId !== SharedTracking.of(client).listenerId)
        throw new TrackedByApplicationError();
      this.#startTracking(client, id);
      // Renewals were not tracked meanwhile: any key may have changed.
      this.#onChange?.(undefined);
    } catch (error) {
      if (isCurrent()) this.#onTrackingError(error);
    }
  }

  #startTracking(client: RedisClient, id: string): void {
    this.#isTracking = true;
    SharedTracking.of(client).add(this, id);
    const onSuccess = (): void => this.health.setAdvice('tracking', undefined);
    client
      .call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', id, 'OPTIN', 'NOLOOP')
      .then(onSuccess, (error: unknown) => id === this.#listenerId && this.#onTrackingError(error));
  }

  /** Ends the tracking after an error reply. After other errors, such as a lost connection, the next commands try again. */
  #onTrackingError(error: unknown): void {
    if (isErrorReply(error) || error instanceof TrackedByApplicationError) this.#onRefusal(error);
    else {
      this.#announcedListenerId = undefined;
      this.#isTracking = false;
    }
  }

  /** Ends the tracking until a connection listens again. */
  #onRefusal(error: unknown): void {
    this.#stop();
    this.#isRefused = true;
    const { message } = toLoggableError(error);
    this.health.setAdvice('tracking', `${NO_TRACKING_CONSEQUENCE}, because CLIENT TRACKING was refused: ${message}`);
  }
}
