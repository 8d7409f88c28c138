import type { RedisClient } from './redis-client.js';

/** The tracking of one lock service, which has a listener of its own. */
export interface TrackingSharer {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Announces this service's listener with the next command, because the listener of another service has stopped. */
  announceAgain(): void;
}

const trackingByClient = new WeakMap<RedisClient, SharedTracking>();

/**
 * The tracking that all lock services on one client share. The server reports the changes for a connection to one
 * listener only, whose service passes them on to the others.
 */
export class SharedTracking {
  readonly #sharers = new Set<TrackingSharer>();
  /** Service whose listener gets the reports. */
  #receiver: TrackingSharer | undefined;
  #listenerId: string | undefined;

  static of(client: RedisClient): SharedTracking {
    const existingTracking = trackingByClient.get(client);
    if (existingTracking) return existingTracking;
    const tracking = new SharedTracking();
    trackingByClient.set(client, tracking);
    return tracking;
  }

  get sharers(): Iterable<TrackingSharer> {
    return this.#sharers;
  }

  get listenerId(): string | undefined {
    return this.#listenerId;
  }

  add(sharer: TrackingSharer, listenerId: string): void {
    this.#sharers.add(sharer);
    this.#receiver = sharer;
    this.#listenerId = listenerId;
  }

  remove(sharer: TrackingSharer): void {
    this.#sharers.delete(sharer);
    if (this.#receiver !== sharer) return;
    this.#receiver = undefined;
    for (const other of this.#sharers) other.announceAgain();
  }
}
