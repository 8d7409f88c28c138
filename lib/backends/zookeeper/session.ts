import { type Clock, pause, type Timer } from '../../core/index.js';
import { computeSessionTimes } from './session-times.js';
import type { SessionIdentity } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';

/** Milliseconds without an answer after which a heartbeat is sent, so that a dead connection is noticed. */
const MAX_QUIET_MS = 2_500;

/** Request that the leader has answered. */
interface AnsweredRequest {
  readonly sentAt: number;
  readonly answeredAt: number;
}

export class ZooKeeperSession {
  readonly identity: SessionIdentity;
  /** Time-out that the server set when it created the session, and from which `times` are computed. */
  readonly ttlMs: number;
  readonly times: ReturnType<typeof computeSessionTimes>;
  readonly #endController = new AbortController();
  /**
   * Latest time at which the leader has surely heard of the session. The leader keeps the session from that time on for
   * the session's time-out.
   */
  #leaderConfirmedAt: number;
  /** Answered requests since `#leaderConfirmedAt`, in their order, sent at least a fifth of `lagMs` apart. */
  #answeredRequests: AnsweredRequest[] = [];
  #nextHeartbeat: Promise<void> | undefined;
  #heartbeatTimer: Timer | undefined;
  #lastHeartbeatAt: number;

  constructor(
    public connection: ZooKeeperConnection,
    private readonly clock: Clock,
  ) {
    this.identity = connection.identity;
    this.ttlMs = connection.negotiatedTtlMs;
    this.times = computeSessionTimes(this.ttlMs);
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
    this.#answeredRequests = [];
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

  /** Sends one heartbeat for all calls until the next microtask. @throws ConnectionLostError */
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
    const nextHeartbeatAt = this.clock.now() + this.times.lagMs;
    // A timer of Node may run a little early, and the second heartbeat would then prove nothing.
    while (this.clock.now() < nextHeartbeatAt) await pause(this.clock, nextHeartbeatAt - this.clock.now());
    await this.heartbeat();
  }

  async #sendHeartbeat(): Promise<void> {
    this.#lastHeartbeatAt = this.clock.now();
    await this.connection.send('sync', { path: '/' });
  }

  /**
   * Trusts that the leader has heard of a request `lagMs` after its answer. The send time of the request proves
   * nothing: a delayed request may reach the follower together with the next ones.
   */
  readonly #onLeaderAnswer = (sentAt: number): void => {
    const { lagMs } = this.times;
    const confirmedRequest = this.#answeredRequests.findLast(({ answeredAt }) => answeredAt <= sentAt - lagMs);
    if (confirmedRequest && confirmedRequest.sentAt > this.#leaderConfirmedAt) {
      this.#leaderConfirmedAt = confirmedRequest.sentAt;
      this.#answeredRequests = this.#answeredRequests.filter((request) => request.sentAt > confirmedRequest.sentAt);
    }
    const lastSentAt = this.#answeredRequests.at(-1)?.sentAt ?? this.#leaderConfirmedAt;
    if (sentAt - lastSentAt >= lagMs / 5) this.#answeredRequests.push({ sentAt, answeredAt: this.clock.now() });
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
