import type { RedisClient } from './redis-client.js';

/** Part of one lock service in the tracking that it shares. Each service has a listener of its own. */
export interface ServiceTracking {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Makes the next command tell the server this service's listener, because the receiving one has stopped. */
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
