import { type Clock, pause, type Timer } from '../../core/index.js';
import { type SessionTimes, timesOf } from './session-times.js';
import type { SessionTicket } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';

/**
 * Our identity on the server. One connection after the other may carry it. It ends when the server says so, or when
 * it is closed: with it go all nodes that were made in it.
 */
export class ZooKeeperSession {
  readonly ticket: SessionTicket;
  readonly times: SessionTimes;
  readonly #end = new AbortController();
  #connection: ZooKeeperConnection;
  /**
   * The leader has surely heard of us at this time, by our clock. From then on it keeps the session for its time-out.
   */
  #provenAt: number;
  /** When some of what the leader has answered since then was sent. */
  #answered: number[] = [];
  #nextBeat: Promise<void> | undefined;
  #beatTimer: Timer | undefined;
  #lastBeatAt: number;

  constructor(
    connection: ZooKeeperConnection,
    private readonly clock: Clock,
  ) {
    this.ticket = connection.ticket;
    this.times = timesOf(connection.sessionMs);
    this.#connection = connection;
    this.#provenAt = connection.openedAt;
    this.#lastBeatAt = connection.openedAt;
    connection.onLeaderAnswer = this.#onLeaderAnswer;
    this.#scheduleBeat();
  }

  /** The present connection, or the last one. */
  get connection(): ZooKeeperConnection {
    return this.#connection;
  }

  /** Aborts when the session is over, and everything in it lost. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** The server has let us come back, which it asks its leader about. */
  resume(connection: ZooKeeperConnection): void {
    this.#connection = connection;
    this.#provenAt = connection.openedAt;
    this.#answered = [];
    connection.onLeaderAnswer = this.#onLeaderAnswer;
  }

  end(): void {
    this.#beatTimer?.cancel();
    this.#end.abort();
  }

  /** From when on what was answered to a question that was sent at `sentAt` may be trusted for `trustMs`. */
  trustedFrom(sentAt: number): number {
    return Math.min(sentAt, this.#provenAt + this.times.trustMs / 2);
  }

  /**
   * A life sign that the leader answers. All that is asked for in one turn goes out as one. @throws ConnectionLostError
   */
  heartbeat(): Promise<void> {
    this.#nextBeat ??= Promise.resolve().then(() => {
      this.#nextBeat = undefined;
      return this.#beat();
    });
    return this.#nextBeat;
  }

  /** Two life signs, the second of which proves that the leader has heard of the first. @throws ConnectionLostError */
  async prove(): Promise<void> {
    await this.heartbeat();
    await pause(this.clock, this.times.lagMs);
    await this.heartbeat();
  }

  async #beat(): Promise<void> {
    this.#lastBeatAt = this.clock.now();
    await this.#connection.ask('sync', { path: '/' });
  }

  readonly #onLeaderAnswer = (sentAt: number): void => {
    const { lagMs } = this.times;
    const proven = this.#answered.findLast((earlier) => earlier <= sentAt - lagMs) ?? this.#provenAt;
    if (proven > this.#provenAt) {
      this.#provenAt = proven;
      this.#answered = this.#answered.filter((earlier) => earlier > proven);
    }
    const last = this.#answered.at(-1) ?? this.#provenAt;
    if (sentAt - last >= lagMs / 5) this.#answered.push(sentAt);
  };

  get #beatDueAt(): number {
    const { beatMs, quietMs } = this.times;
    return Math.min(this.#lastBeatAt + beatMs, Math.max(this.#lastBeatAt, this.#connection.heardAt) + quietMs);
  }

  #scheduleBeat(): void {
    const leftMs = this.#beatDueAt - this.clock.now();
    this.#beatTimer = this.clock.schedule(leftMs, () => this.#onBeatDue(), { background: true });
  }

  #onBeatDue(): void {
    const isDue = this.clock.now() >= this.#beatDueAt;
    this.#lastBeatAt = isDue ? this.clock.now() : this.#lastBeatAt;
    // A failure shows in the end of the connection.
    if (isDue && this.#connection.alive) this.heartbeat().catch(() => undefined);
    this.#scheduleBeat();
  }
}
