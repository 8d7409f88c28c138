import type { RedisClient } from './redis-client.js';

/** One of the lock services on a client, which has a listener of its own. */
export interface TrackingUser {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Has the next renewals name this user's listener, because that of another user has stopped. */
  trackAnew(): void;
}

const trackingByClient = new WeakMap<RedisClient, SharedTracking>();

/**
 * Tracking of keys that all lock services on one client of the application share. The server sends the messages of a
 * connection to one listener, whose user passes them on to all.
 */
export class SharedTracking {
  readonly #users = new Set<TrackingUser>();
  /** User whose listener gets the messages. */
  #receiver: TrackingUser | undefined;
  #listenerId: string | undefined;

  static of(client: RedisClient): SharedTracking {
    const existing = trackingByClient.get(client);
    if (existing) return existing;
    const tracking = new SharedTracking();
    trackingByClient.set(client, tracking);
    return tracking;
  }

  get users(): Iterable<TrackingUser> {
    return this.#users;
  }

  /** Number of the last listener that a user has named. */
  get listenerId(): string | undefined {
    return this.#listenerId;
  }

  /** Adds a user whose listener gets the messages from now on. */
  add(user: TrackingUser, listenerId: string): void {
    this.#users.add(user);
    this.#receiver = user;
    this.#listenerId = listenerId;
  }

  /** Removes a user. The others take over if its listener got the messages. */
  remove(user: TrackingUser): void {
    this.#users.delete(user);
    if (this.#receiver !== user) return;
    this.#receiver = undefined;
    for (const other of this.#users) other.trackAnew();
  }
}
