import { AbortListener, systemClock } from '../../core/index.js';
import { NodeWatch } from './node-watch.js';
import type { OwnNode } from './nodes.js';
import type { NodeEvent } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZooKeeperSession } from './session.js';

/** A node that has the key. Tells when the server has removed it, or has ended its session. */
export class HeldNode {
  readonly #revoke = new AbortController();
  readonly #watch = new NodeWatch();
  readonly #sessionEnd: AbortListener;
  #released = false;

  constructor(
    private readonly session: ZooKeeperSession,
    readonly node: OwnNode,
  ) {
    this.#sessionEnd = new AbortListener(session.ended, this.#onGone);
  }

  get revoked(): AbortSignal {
    return this.#revoke.signal;
  }

  /** Sends a life sign of the session. The first one over each connection also reads the node and watches it. */
  async renew(): Promise<boolean> {
    const { session } = this;
    const askedAt = systemClock.now();
    if (this.#isOver) return false;
    await Promise.all([this.#look(session.connection), session.heartbeat()]);
    if (this.#isOver) return false;
    if (session.trustedFrom(askedAt) < askedAt) throw new Error('the leader may not have heard of the session in time');
    return true;
  }

  forget(): void {
    this.#released = true;
    this.#sessionEnd.end();
    this.#watch.end();
  }

  get #isOver(): boolean {
    return this.#released || this.revoked.aborted;
  }

  async #look(connection: ZooKeeperConnection): Promise<void> {
    if (this.#watch.isOn(connection)) return;
    const state = await this.#watch.read(connection, this.node.path, this.#onEvent);
    if (state?.czxid !== this.node.czxid) this.#onGone();
  }

  readonly #onEvent = (event: NodeEvent): void => {
    if (event === 'deleted') this.#onGone();
  };

  readonly #onGone = (): void => {
    this.forget();
    this.#revoke.abort();
  };
}
