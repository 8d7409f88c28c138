import type { RedisClient } from './redis-client.js';

/** The tracking of one lock service, which has a listener of its own. */
export interface TrackingUser {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Announces this user's listener with the next commands, because the listener of another user has stopped. */
  restartTracking(): void;
}

const trackingByClient = new WeakMap<RedisClient, SharedTracking>();

/**
 * The tracking that all lock services on one client share. The server reports the changes for a connection to one
 * listener only, whose user passes them on to all users.
 */
export class SharedTracking {
  readonly #users = new Set<TrackingUser>();
  /** User whose listener gets the reports. */
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

  /** The `CLIENT ID` of the listener that was last announced to the server. */
  get listenerId(): string | undefined {
    return this.#listenerId;
  }

  /** Adds a user whose listener gets the reports from now on. */
  add(user: TrackingUser, listenerId: string): void {
    this.#users.add(user);
    this.#receiver = user;
    this.#listenerId = listenerId;
  }

  /** Removes a user. If its listener got the reports, another user's listener takes over. */
  remove(user: TrackingUser): void {
    this.#users.delete(user);
    if (this.#receiver !== user) return;
    this.#receiver = undefined;
    for (const other of this.#users) other.restartTracking();
  }
}
