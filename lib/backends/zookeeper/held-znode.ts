import { AbortListener, systemClock } from '../../core/index.js';
import { ZnodeWatch } from './znode-watch.js';
import type { OwnZnode } from './znodes.js';
import type { ZnodeEvent } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZooKeeperSession } from './session.js';

export class HeldZnode {
  readonly #revocationController = new AbortController();
  readonly #watch = new ZnodeWatch();
  readonly #sessionEndListener: AbortListener;
  #hasEnded = false;

  constructor(
    private readonly session: ZooKeeperSession,
    readonly znode: OwnZnode,
  ) {
    this.#sessionEndListener = new AbortListener(session.endSignal, this.#revoke);
  }

  get revoked(): AbortSignal {
    return this.#revocationController.signal;
  }

  /**
   * Returns whether the owner still holds the key. The first call on each connection reads the znode and watches it.
   * Later calls rely on the watch. A write to the znode ends the watch, so that the next call reads again.
   */
  async renew(): Promise<boolean> {
    const { session } = this;
    const requestedAt = systemClock.now();
    if (this.#hasEndedOrIsRevoked) return false;
    await Promise.all([this.#watchOrRevoke(session.connection), session.heartbeat()]);
    if (this.#hasEndedOrIsRevoked) return false;
    if (session.getTrustStart(requestedAt) < requestedAt)
      throw new Error('the leader may not have heard of the session in time');
    return true;
  }

  end(): void {
    this.#hasEnded = true;
    this.#sessionEndListener.end();
    this.#watch.end();
  }

  get #hasEndedOrIsRevoked(): boolean {
    return this.#hasEnded || this.revoked.aborted;
  }

  async #watchOrRevoke(connection: ZooKeeperConnection): Promise<void> {
    if (this.#watch.isActiveOn(connection)) return;
    const state = await this.#watch.readAndWatch(connection, this.znode.path, this.#onEvent);
    if (state?.czxid !== this.znode.czxid) this.#revoke();
  }

  readonly #onEvent = (event: ZnodeEvent): void => {
    if (event === 'deleted') this.#revoke();
  };

  readonly #revoke = (): void => {
    this.end();
    this.#revocationController.abort();
  };
}
