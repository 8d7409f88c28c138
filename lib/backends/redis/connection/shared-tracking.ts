import type { RedisClient } from './redis-client.js';

/**
 * Key tracking of one lock service, which may share its client with other services. Each service has a listener of its
 * own: a second connection, to which the server can send its reports.
 */
export interface ServiceTracking {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Makes the next command tell the server this service's listener, because the receiving service has stopped. */
  announceWithNextCommand(): void;
}

const trackingByClient = new WeakMap<RedisClient, SharedTracking>();

/**
 * The tracking that all lock services on one client share. The server reports the changes for a connection to one
 * listener only, whose service passes them on to the others.
 */
export class SharedTracking {
  readonly #sharers = new Set<ServiceTracking>();
  /** Service whose listener gets the reports. */
  #receiver: ServiceTracking | undefined;
  #listenerId: string | undefined;

  static of(client: RedisClient): SharedTracking {
    const existingTracking = trackingByClient.get(client);
    if (existingTracking) return existingTracking;
    const tracking = new SharedTracking();
    trackingByClient.set(client, tracking);
    return tracking;
  }

  get sharers(): Iterable<ServiceTracking> {
    return this.#sharers;
  }

  get listenerId(): string | undefined {
    return this.#listenerId;
  }

  addAsReceiver(sharer: ServiceTracking, listenerId: string): void {
    this.#sharers.add(sharer);
    this.#receiver = sharer;
    this.#listenerId = listenerId;
  }

  remove(sharer: ServiceTracking): void {
    this.#sharers.delete(sharer);
    if (this.#receiver !== sharer) return;
    this.#receiver = undefined;
    for (const other of this.#sharers) other.announceWithNextCommand();
  }
}
