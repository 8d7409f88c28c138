import type { RedisClient } from './redis-client.js';

/**
 * Key tracking of one lock service, which may share its client with other services. Each service has a listener of its
 * own: a second connection, to which the server can send its reports.
 */
export interface ServiceTracking {
  /** @param name name of a key that has changed; `undefined` for any key */
  onChange(name: string | undefined): void;
  /** Announces this service's listener with the next command: the service that got the reports has stopped. */
  announceWithNextCommand(): void;
}

const trackingByClient = new WeakMap<RedisClient, SharedTracking>();

/**
 * The tracking that all lock services on one client share. The server reports the changes for a connection to one
 * listener only, whose service passes them on to the others.
 */
export class SharedTracking {
  readonly #serviceTrackings = new Set<ServiceTracking>();
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

  get serviceTrackings(): Iterable<ServiceTracking> {
    return this.#serviceTrackings;
  }

  get listenerId(): string | undefined {
    return this.#listenerId;
  }

  addAsReceiver(serviceTracking: ServiceTracking, listenerId: string): void {
    this.#serviceTrackings.add(serviceTracking);
    this.#receiver = serviceTracking;
    this.#listenerId = listenerId;
  }

  get isUnused(): boolean {
    return this.#serviceTrackings.size === 0;
  }

  remove(serviceTracking: ServiceTracking): void {
    this.#serviceTrackings.delete(serviceTracking);
    if (this.#receiver !== serviceTracking) return;
    this.#receiver = undefined;
    for (const other of this.#serviceTrackings) other.announceWithNextCommand();
  }
}
