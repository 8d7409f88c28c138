import { type Clock, pause, type Timer } from '../../core/index.js';
import { timesOf } from './session-times.js';
import type { SessionTicket } from './transport/single-connection-client.js';
import type { ZooKeeperConnection } from './transport/connection.js';

/**
 * A connection on which nothing was answered for so long is asked for a life sign, which a dead one does not answer.
 */
const LONGEST_QUIET_MS = 2_500;

/** The identity of this process on the server. One connection after the other carries it. All its nodes end with it. */
export class ZooKeeperSession {
  readonly ticket: SessionTicket;
  readonly times: ReturnType<typeof timesOf>;
  readonly #end = new AbortController();
  /** By our clock, the leader has surely heard of us then. It keeps the session for its time-out from then on. */
  #provenAt: number;
  /** When some of the requests were sent that the leader has answered since then. */
  #answered: number[] = [];
  #nextBeat: Promise<void> | undefined;
  #beatTimer: Timer | undefined;
  #lastBeatAt: number;

  constructor(
    /** The present connection, or the last one. */
    public connection: ZooKeeperConnection,
    private readonly clock: Clock,
  ) {
    this.ticket = connection.ticket;
    this.times = timesOf(connection.sessionMs);
    this.#provenAt = connection.openedAt;
    this.#lastBeatAt = connection.openedAt;
    connection.onLeaderAnswer = this.#onLeaderAnswer;
    this.#scheduleBeat();
  }

  /** Aborts when the session is over, and everything in it lost. */
  get ended(): AbortSignal {
    return this.#end.signal;
  }

  /** A server that accepts the session again has asked its leader. */
  resume(connection: ZooKeeperConnection): void {
    this.connection = connection;
    this.#provenAt = connection.openedAt;
    this.#answered = [];
    connection.onLeaderAnswer = this.#onLeaderAnswer;
  }

  end(): void {
    this.#beatTimer?.cancel();
    this.#end.abort();
  }

  /** An answer to a question that was sent at `sentAt` may be trusted for `trustMs` from this time on. */
  trustedFrom(sentAt: number): number {
    return Math.min(sentAt, this.#provenAt + this.times.trustMs / 2);
  }

  /** A life sign that the leader answers. All calls of one turn share one. @throws ConnectionLostError */
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
    await this.connection.ask('sync', { path: '/' });
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
    const quietSince = Math.max(this.#lastBeatAt, this.connection.heardAt);
    return Math.min(this.#lastBeatAt + this.times.beatMs, quietSince + LONGEST_QUIET_MS);
  }

  #scheduleBeat(): void {
    const leftMs = this.#beatDueAt - this.clock.now();
    this.#beatTimer = this.clock.schedule(leftMs, () => this.#onBeatDue(), { background: true });
  }

  #onBeatDue(): void {
    const isDue = this.clock.now() >= this.#beatDueAt;
    if (isDue) this.#lastBeatAt = this.clock.now();
    // A failure shows in the end of the connection.
    if (isDue && this.connection.alive) this.heartbeat().catch(() => undefined);
    this.#scheduleBeat();
  }
}
