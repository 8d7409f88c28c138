import type { Clock, Lease, Timer } from '../../core/index.js';
import { type OwnNode, readNode } from './nodes.js';
import type { NodeEvent } from './tamed-client.js';
import type { ZooKeeperConnection } from './zookeeper-connection.js';
import type { ZooKeeperSession } from './zookeeper-session.js';

export interface ZooKeeperGrant {
  readonly session: ZooKeeperSession;
  readonly node: OwnNode;
  readonly queued: boolean;
  readonly sentAt: number;
  readonly clock: Clock;
  /** Takes the node away, in the background if it cannot be done at once. */
  readonly leave: () => Promise<void>;
}

/** A node that has the key. It would live as long as its session, so one that nobody renews is taken away when its time is over. */
export class ZooKeeperLease implements Lease {
  readonly fencingToken: bigint;
  readonly queued: boolean;
  readonly ttlMs: number;
  readonly sentAt: number;
  readonly #revoke = new AbortController();
  /** The connection on which the server watches our node for us. */
  #watchedOn: ZooKeeperConnection | undefined;
  #released: Promise<void> | undefined;
  #expiresAt: number;
  #expiry: Timer;

  constructor(private readonly grant: ZooKeeperGrant) {
    const { session, node, queued, sentAt } = grant;
    this.fencingToken = node.czxid;
    this.queued = queued;
    this.ttlMs = session.times.trustMs;
    this.sentAt = sentAt;
    this.#expiresAt = sentAt + this.ttlMs;
    this.#expiry = this.#watchExpiry();
    session.ended.addEventListener('abort', this.#onGone);
  }

  get revoked(): AbortSignal {
    return this.#revoke.signal;
  }

  /**
   * A life sign of the session, and with the first one over each connection a look at our node, which from then on is watched: the
   * next life sign comes after the news of its end.
   */
  async renew(): Promise<boolean> {
    const { session, clock } = this.grant;
    const askedAt = clock.now();
    if (this.#isOver) return false;
    await Promise.all([this.#watch(session.connection), session.heartbeat()]);
    if (this.#isOver) return false;
    if (session.trustedFrom(askedAt) < askedAt) throw new Error('the leader may not have heard of the session in time');
    this.#expiresAt = askedAt + this.ttlMs;
    return true;
  }

  release(): Promise<void> {
    this.#forget();
    this.#released ??= this.grant.leave();
    return this.#released;
  }

  get #isOver(): boolean {
    return this.#released !== undefined || this.revoked.aborted || this.grant.session.ended.aborted;
  }

  async #watch(connection: ZooKeeperConnection): Promise<void> {
    if (this.#watchedOn === connection) return;
    const { node } = this.grant;
    this.#watchedOn = connection;
    const state = await readNode(connection, node.path, this.#onEvent).catch((error: unknown) => {
      this.#watchedOn = undefined;
      throw error;
    });
    if (state?.czxid !== node.czxid) this.#onGone();
  }

  #watchExpiry(): Timer {
    const { clock } = this.grant;
    return clock.schedule(this.#expiresAt - clock.now(), () => this.#onExpiry(), { background: true });
  }

  #onExpiry(): void {
    if (this.grant.clock.now() < this.#expiresAt) this.#expiry = this.#watchExpiry();
    else this.release().catch(() => undefined);
  }

  readonly #onEvent = (event: NodeEvent): void => {
    if (event === 'deleted') this.#onGone();
    else this.#watchedOn = undefined;
  };

  readonly #onGone = (): void => {
    this.#forget();
    this.#revoke.abort();
  };

  #forget(): void {
    this.#expiry.cancel();
    this.grant.session.ended.removeEventListener('abort', this.#onGone);
    this.#watchedOn?.watches.delete(this.grant.node.path, this.#onEvent);
  }
}
