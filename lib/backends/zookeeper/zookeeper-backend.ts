import {
  type AcquireRequest,
  type HealthSource,
  type Guarantee,
  type Lease,
  type LockBackend,
  LockBackendError,
  LockError,
  pause,
  systemClock,
} from '../../core/index.js';
import type { Place } from './place.js';
import { type PlaceSettings, SequentialPlace } from './sequential-place.js';
import { SessionKeeper } from './session-keeper.js';
import { SimplePlace } from './simple-place.js';
import { ZooKeeperContender } from './zookeeper-contender.js';
import { ConnectionLostError, isFinal } from './zookeeper-error.js';
import type { ResolvedOptions } from './zookeeper-options.js';
import type { ZooKeeperSession } from './zookeeper-session.js';

const FIRST_RETRY_MS = 20;
const LONGEST_RETRY_MS = 1_000;

const PLACES = { sequential: SequentialPlace, simple: SimplePlace };

/** Locks in ZooKeeper: one session for all, and a contender for each caller. */
export class ZooKeeperBackend implements LockBackend {
  readonly name = 'zookeeper';
  readonly guarantee: Guarantee;
  readonly #keeper: SessionKeeper;
  readonly #leases = new Map<string, Lease>();
  readonly #tasks = new Set<Promise<unknown>>();

  constructor(private readonly options: ResolvedOptions) {
    this.guarantee = options.servers.length > 1 ? 'consensus' : 'durable';
    this.#keeper = new SessionKeeper(options);
  }

  /** Connects. */
  async start(): Promise<void> {
    await this.#keeper.connected(true);
  }

  async acquire(key: string, request: AcquireRequest): Promise<Lease | null> {
    request.signal?.throwIfAborted();
    try {
      const known = this.#leases.get(request.owner);
      if (known && (await known.renew())) return known;
      const contender = new ZooKeeperContender({
        keeper: this.#keeper,
        request,
        placeIn: (session) => this.#place(key, request, session),
        leave: (place) => this.#leave(place, request.owner),
      });
      this.#track(contender.settled);
      const lease = await contender.outcome();
      if (lease) this.#leases.set(request.owner, lease);
      return lease;
    } catch (error) {
      if (error instanceof LockError || (request.signal?.aborted === true && error === request.signal.reason))
        throw error;
      throw new LockBackendError(key, { backend: this.name, operation: 'acquire', cause: error });
    }
  }

  /** A follower may not have heard yet of what the leader has decided: so it asks it first, in the same write. */
  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { base, mode } = this.options;
    const { connection } = await this.#keeper.connected(true);
    const synced = connection.ask('sync', { path: base });
    const [present] = await Promise.all([PLACES[mode].ownerOf(connection, base, key), synced]);
    return present === owner;
  }

  async close(): Promise<void> {
    await this.#keeper.close();
    await Promise.all(this.#tasks);
  }

  get health(): HealthSource {
    return this.#keeper.health;
  }

  #place(key: string, { owner, metadata }: AcquireRequest, session: ZooKeeperSession): Place {
    const { base, acl, mode } = this.options;
    const settings: PlaceSettings = { key, base, acl };
    return new PLACES[mode](session, settings, { owner, metadata });
  }

  /** Whoever waits is told at once of what goes wrong; it is tried again until it is sure that nothing is left. */
  #leave(place: Place, owner: string): Promise<void> {
    this.#leases.delete(owner);
    const left = place.leave();
    this.#track(left.catch((error: unknown) => this.#leaveUntilSure(place, error)));
    return left;
  }

  /** The end of the session is the end of all that was made in it. */
  async #leaveUntilSure(place: Place, failure: unknown): Promise<void> {
    const { ended } = place.session;
    let pauseMs = FIRST_RETRY_MS;
    for (let last = failure; !isFinal(last) && !ended.aborted; pauseMs = Math.min(2 * pauseMs, LONGEST_RETRY_MS)) {
      if (!(last instanceof ConnectionLostError)) await pause(systemClock, pauseMs, { background: true, until: ended });
      try {
        if ((await this.#keeper.connected(false)) === place.session) await place.leave();
        return;
      } catch (error) {
        last = error;
      }
    }
  }

  #track(task: Promise<unknown>): void {
    const over = task.finally(() => this.#tasks.delete(over));
    this.#tasks.add(over);
  }
}
