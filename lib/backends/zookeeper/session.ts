import { type Clock, pause, type Timer } from '../../core/index.js';
import { computeSessionTimes } from './session-times.js';
import type { SessionIdentity } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';

/** Milliseconds without an answer after which a heartbeat is sent, so that a dead connection is noticed. */
const MAX_QUIET_MS = 2_500;

export class ZooKeeperSession {
  readonly identity: SessionIdentity;
  readonly times: ReturnType<typeof computeSessionTimes>;
  readonly #endController = new AbortController();
  /**
   * Latest time at which the leader has surely heard of the session. The leader keeps the session from that time on for
   * the session's time-out.
   */
  #leaderConfirmedAt: number;
  /**
   * Ascending send times of requests that the leader has answered since `#leaderConfirmedAt`, at least a fifth of
   * `lagMs` apart.
   */
  #answeredSendTimes: number[] = [];
  #nextHeartbeat: Promise<void> | undefined;
  #heartbeatTimer: Timer | undefined;
  #lastHeartbeatAt: number;

  constructor(
    public connection: ZooKeeperConnection,
    private readonly clock: Clock,
  ) {
    this.identity = connection.identity;
    this.times = computeSessionTimes(connection.negotiatedTtlMs);
    this.#leaderConfirmedAt = connection.openedAt;
    this.#lastHeartbeatAt = connection.openedAt;
    connection.onLeaderAnswer = this.#onLeaderAnswer;
    this.#scheduleHeartbeat();
  }

  get endSignal(): AbortSignal {
    return this.#endController.signal;
  }

  /** Continues the session on a connection whose server has asked the leader and accepted the session. */
  resume(connection: ZooKeeperConnection): void {
    this.connection = connection;
    this.#leaderConfirmedAt = connection.openedAt;
    this.#answeredSendTimes = [];
    connection.onLeaderAnswer = this.#onLeaderAnswer;
  }

  end(): void {
    this.#heartbeatTimer?.cancel();
    this.#endController.abort();
  }

  /**
   * Returns the time from which the answer to a request may be trusted for `trustMs`. That is the time when the request
   * was sent, or an earlier one if the leader might end the session before the trust ends.
   */
  getTrustStart(sentAt: number): number {
    return Math.min(sentAt, this.#leaderConfirmedAt + this.times.trustMs / 2);
  }

  /** Sends one heartbeat for all calls of the same moment. @throws ConnectionLostError */
  heartbeat(): Promise<void> {
    this.#nextHeartbeat ??= Promise.resolve().then(() => {
      this.#nextHeartbeat = undefined;
      return this.#sendHeartbeat();
    });
    return this.#nextHeartbeat;
  }

  /**
   * Sends two heartbeats: the second one proves that the leader has heard of the first one.
   * @throws ConnectionLostError
   */
  async confirmWithLeader(): Promise<void> {
    await this.heartbeat();
    await pause(this.clock, this.times.lagMs);
    await this.heartbeat();
  }

  async #sendHeartbeat(): Promise<void> {
    this.#lastHeartbeatAt = this.clock.now();
    await this.connection.send('sync', { path: '/' });
  }

  readonly #onLeaderAnswer = (sentAt: number): void => {
    const { lagMs } = this.times;
    const newConfirmedAt =
      this.#answeredSendTimes.findLast((sendTime) => sendTime <= sentAt - lagMs) ?? this.#leaderConfirmedAt;
    if (newConfirmedAt > this.#leaderConfirmedAt) {
      this.#leaderConfirmedAt = newConfirmedAt;
      this.#answeredSendTimes = this.#answeredSendTimes.filter((sendTime) => sendTime > newConfirmedAt);
    }
    const lastAnsweredSentAt = this.#answeredSendTimes.at(-1) ?? this.#leaderConfirmedAt;
    if (sentAt - lastAnsweredSentAt >= lagMs / 5) this.#answeredSendTimes.push(sentAt);
  };

  get #heartbeatDueAt(): number {
    const quietSince = Math.max(this.#lastHeartbeatAt, this.connection.lastReplyAt);
    return Math.min(this.#lastHeartbeatAt + this.times.heartbeatIntervalMs, quietSince + MAX_QUIET_MS);
  }

  #scheduleHeartbeat(): void {
    const leftMs = this.#heartbeatDueAt - this.clock.now();
    this.#heartbeatTimer = this.clock.schedule(leftMs, () => this.#onHeartbeatDue(), { background: true });
  }

  #onHeartbeatDue(): void {
    const isDue = this.clock.now() >= this.#heartbeatDueAt;
    if (isDue) this.#lastHeartbeatAt = this.clock.now();
    // Ignores a failure, because it also ends the connection, and `EnsembleClient` opens another one.
    if (isDue && this.connection.isAlive) this.heartbeat().catch(() => undefined);
    this.#scheduleHeartbeat();
  }
}
