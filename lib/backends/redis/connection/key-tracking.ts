import type { ReportedHealth } from '../../../core/index.js';
import { isErrorReply, toLoggableError } from '../error.js';
import type { RedisClient } from './redis-client.js';
import { SharedTracking, type ServiceTracking } from './shared-tracking.js';

export const CHANGES_CHANNEL = '__redis__:invalidate';
export const NO_TRACKING_CONSEQUENCE = 'a holder whose key is deleted learns of it with its next renewal';

const REDIRECT_ID_WITHOUT_TRACKING = '-1';

class TrackedByApplicationError extends Error {
  constructor() {
    super('the application tracks keys on the given client itself');
  }
}

/**
 * Asks the server to track the keys that this process renews, and to report a change of one of them. The reports go to
 * a second connection, the listener, because RESP2 cannot mix reports with replies.
 * https://redis.io/docs/latest/develop/reference/client-side-caching/
 *
 * A report is only a hint: the server also sends it when it stops tracking a key for lack of space. After a report the
 * server does not track the key until its next renewal.
 */
export class KeyTracking implements ServiceTracking {
  #listenerClient: RedisClient | undefined;
  /** The `CLIENT ID` of the listener, once it has subscribed. */
  #listenerId: string | undefined;
  /** Client that sends commands, whose server was told where to report changes, or is about to be told. */
  #commandClient: RedisClient | undefined;
  /** Listener that was announced for `#commandClient`, or is about to be. */
  #announcedListenerId: string | undefined;
  #isTracking = false;
  #isTrackingRefused = false;
  #onChange: ((name: string | undefined) => void) | undefined;

  constructor(
    private readonly health: ReportedHealth,
    /** Whether the application supplied the client for commands. The application may then track keys for a cache. */
    private readonly isApplicationClient = false,
  ) {}

  get isWanted(): boolean {
    return this.#onChange !== undefined;
  }

  /** Whether keys are tracked, or will be as soon as a connection listens. */
  get isPossible(): boolean {
    return this.isWanted && !this.#isTrackingRefused;
  }

  get isListening(): boolean {
    return this.#listenerId !== undefined;
  }

  /** @param onChange called with the name of a key that has changed; `undefined` stands for any key */
  start(onChange: (name: string | undefined) => void): void {
    this.#onChange = onChange;
  }

  /** Makes `client` the listener, which must be connected and must not have subscribed yet. Never rejects. */
  async listen(client: RedisClient): Promise<void> {
    this.#listenerClient = client;
    try {
      const [clientId] = await Promise.all([client.call('client', 'id'), client.call('subscribe', CHANGES_CHANNEL)]);
      if (client !== this.#listenerClient) return;
      this.#isTrackingRefused = false;
      this.#listenerId = String(clientId);
      // Earlier renewals were not tracked: any key may have changed.
      this.#onChange?.(undefined);
    } catch (error) {
      if (client === this.#listenerClient) this.#onRefusal(error);
    }
  }

  stopListening(client: RedisClient): void {
    if (client === this.#listenerClient) this.#stop();
  }

  /**
   * Switches the tracking off for good: the application may want to track keys itself later. Until then a listener that
   * is lost must not switch it off, because the connection for commands may be lost, too. A client that sends a command
   * then may mix up the replies of its next connection: https://github.com/redis/node-redis/issues/3346
   */
  end(client: RedisClient): void {
    if (client !== this.#listenerClient) return;
    const [wasTracking, commandClient] = [this.#isTracking, this.#commandClient];
    this.#stop();
    if (!this.isApplicationClient || !wasTracking || commandClient?.status !== 'ready') return;
    if (SharedTracking.of(commandClient).isUnused)
      commandClient.call('CLIENT', 'TRACKING', 'OFF').catch(() => undefined);
  }

  #stop(): void {
    this.#listenerClient = undefined;
    this.#listenerId = undefined;
    this.#isTracking = false;
    const client = this.#commandClient;
    this.#commandClient = undefined;
    if (client) SharedTracking.of(client).remove(this);
  }

  /** @param names texts or buffers; `null` for all keys */
  readonly onMessage = (channel: unknown, names: unknown): void => {
    if (String(channel) !== CHANGES_CHANNEL) return;
    // Several services may share the client. One of their listeners gets the reports for all.
    const serviceTrackings = this.#commandClient ? SharedTracking.of(this.#commandClient).serviceTrackings : [this];
    for (const serviceTracking of serviceTrackings) {
      if (!Array.isArray(names)) serviceTracking.onChange(undefined);
      else for (const name of names) serviceTracking.onChange(String(name));
    }
  };

  onChange(name: string | undefined): void {
    this.#onChange?.(name);
  }

  announceWithNextCommand(): void {
    this.#isTracking = false;
    this.#announcedListenerId = undefined;
    this.onChange(undefined);
  }

  /** Has the server send reports for the connection of `client` to the listener, unless it does so already. */
  announceListener(client: RedisClient): void {
    const listenerId = this.#listenerId;
    if (listenerId === undefined || (client === this.#commandClient && listenerId === this.#announcedListenerId))
      return;
    this.#commandClient = client;
    this.#announcedListenerId = listenerId;
    this.#isTracking = false;
    if (this.isApplicationClient) void this.#trackApplicationClient(client, listenerId);
    else this.#startTracking(client, listenerId);
  }

  trackNextCommand(client: RedisClient): void {
    if (client !== this.#commandClient || !this.#isTracking) return;
    client.call('CLIENT', 'CACHING', 'YES').catch((error: unknown) => {
      if (this.#isTracking && isErrorReply(error)) this.#onRefusal(error);
    });
  }

  /** Starts tracking, unless the application tracks keys on its client: the application would lose its own reports. */
  async #trackApplicationClient(client: RedisClient, listenerId: string): Promise<void> {
    const isCurrent = (): boolean => client === this.#commandClient && listenerId === this.#listenerId;
    try {
      const redirectId = String(await client.call('CLIENT', 'GETREDIR'));
      if (!isCurrent()) return;
      if (redirectId !== REDIRECT_ID_WITHOUT_TRACKING && redirectId !== SharedTracking.of(client).listenerId)
        throw new TrackedByApplicationError();
      this.#startTracking(client, listenerId);
      // Renewals were not tracked meanwhile: any key may have changed.
      this.#onChange?.(undefined);
    } catch (error) {
      if (isCurrent()) this.#onTrackingError(error);
    }
  }

  #startTracking(client: RedisClient, listenerId: string): void {
    this.#isTracking = true;
    SharedTracking.of(client).addAsReceiver(this, listenerId);
    const onSuccess = (): void => this.health.setAdvice('tracking', undefined);
    client
      .call('CLIENT', 'TRACKING', 'ON', 'REDIRECT', listenerId, 'OPTIN', 'NOLOOP')
      .then(onSuccess, (error: unknown) => listenerId === this.#listenerId && this.#onTrackingError(error));
  }

  /** Ends the tracking after an error reply, or when the application tracks keys. Otherwise the next commands retry. */
  #onTrackingError(error: unknown): void {
    if (isErrorReply(error) || error instanceof TrackedByApplicationError) this.#onRefusal(error);
    else {
      this.#announcedListenerId = undefined;
      this.#isTracking = false;
    }
  }

  #onRefusal(error: unknown): void {
    this.#stop();
    this.#isTrackingRefused = true;
    const { message } = toLoggableError(error);
    this.health.setAdvice('tracking', `${NO_TRACKING_CONSEQUENCE}, because CLIENT TRACKING was refused: ${message}`);
  }
}
