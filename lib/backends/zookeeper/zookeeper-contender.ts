import { randomInt } from 'node:crypto';
import { AbortListener, type AcquireRequest, type Lease, pause, trustedUntil, within } from '../../core/index.js';
import type { Place, Standing } from './place.js';
import type { SessionKeeper } from './session-keeper.js';
import { ConnectionLostError, isFinal } from './zookeeper-error.js';
import { ZooKeeperLease } from './zookeeper-lease.js';
import type { ZooKeeperSession } from './zookeeper-session.js';

export interface ContenderSettings {
  readonly keeper: SessionKeeper;
  readonly request: AcquireRequest;
  readonly placeIn: (session: ZooKeeperSession) => Place;
  /** Takes a place away, in the background if it cannot be done at once. */
  readonly leave: (place: Place) => Promise<void>;
}

/** A server that answers does so within this time. */
const SILENCE_MS = 100;
/** Whoever waits to be told looks by himself after so long, give or take a tenth. */
const LOOK_AGAIN_MS = 4_500;

/** One caller's way to a key. Goes on in the background until nothing of it is left, when the caller has given up. */
export class ZooKeeperContender {
  /** Resolves when nothing is left to do, lease or no lease. */
  readonly settled: Promise<unknown>;
  readonly #once: boolean;
  #looks = 0;
  /** Somebody else had the key when we last looked. */
  #refused = false;
  #givenUp = false;
  /** Ends what we wait for. There is one thing at a time. */
  #wakeUp: () => void = () => undefined;
  readonly #task: Promise<Lease | null>;

  constructor(private readonly settings: ContenderSettings) {
    this.#once = settings.request.deadline.passed;
    this.#task = this.#contend();
    this.settled = this.#task.catch(() => undefined);
  }

  /** Settles as soon as the caller has given up. Rejects with what went wrong, or with the signal's reason. */
  outcome(): Promise<Lease | null> {
    const { deadline, signal } = this.settings.request;
    return new Promise<Lease | null>((resolve, reject) => {
      const over = (settle: () => void): void => {
        this.#givenUp = true;
        this.#wakeUp();
        timer?.cancel();
        listener?.end();
        settle();
      };
      const onAbort = (): void => over(() => reject(signal?.reason));
      const onDeadline = (graceMs: number): void => {
        if (this.#refused && this.settings.keeper.answersWithin(SILENCE_MS)) over(() => resolve(null));
        else if (graceMs > 0) timer = deadline.clock.schedule(graceMs, () => onDeadline(0));
        else over(() => reject(this.#noAnswer()));
      };
      let timer = this.#once ? undefined : deadline.clock.schedule(deadline.remainingMs, () => onDeadline(SILENCE_MS));
      const listener = signal && new AbortListener(signal, onAbort);
      this.#task.then(
        (lease) => (this.#givenUp ? void lease?.release().catch(() => undefined) : over(() => resolve(lease))),
        (error: unknown) => over(() => reject(error)),
      );
    });
  }

  #noAnswer(): Error {
    const { status, detail } = this.settings.keeper.health.current;
    return new Error(status === 'down' && detail !== undefined ? detail : 'no answer before the deadline');
  }

  async #contend(): Promise<Lease | null> {
    const { keeper, placeIn, leave } = this.settings;
    let place: Place | undefined;
    let lease: Lease | undefined;
    let left: Promise<void> | undefined;
    try {
      while (!this.#givenUp && !lease) {
        const session = await this.#unlessGivenUp(keeper.connected(this.#once));
        if (!session) break;
        if (place?.session !== session) place = placeIn(session);
        lease = await this.#look(place);
        if (this.#once && this.#refused) break;
      }
    } finally {
      if (place && (!lease || this.#givenUp)) left = leave(place);
    }
    if (!left || !place) return lease ?? null;
    await within(this.settings.request.deadline.clock, place.session.times.silenceMs, left.catch(unlessItGoesOn));
    return null;
  }

  /** Returns a lease, or when it is worth another look. Whoever does not wait looks once more if the first answer is lost. */
  async #look(place: Place): Promise<Lease | undefined> {
    const { request, leave } = this.settings;
    const { clock } = request.deadline;
    const askedAt = clock.now();
    this.#looks += 1;
    let standing: Standing;
    try {
      standing = await place.look(!this.#once);
    } catch (error) {
      if (!(error instanceof ConnectionLostError) || (this.#once && this.#looks > 1)) throw error;
      return undefined;
    }
    if (!standing.node) {
      await this.#wait(standing);
      return undefined;
    }
    const { session } = place;
    const sentAt = session.trustedFrom(askedAt);
    if (clock.now() < trustedUntil(sentAt, session.times.trustMs)) {
      const { node } = standing;
      return new ZooKeeperLease({ session, node, queued: this.#refused, sentAt, clock, leave: () => leave(place) });
    }
    await pause(clock, session.times.lagMs);
    return undefined;
  }

  async #wait({ holder, change, forget }: Standing & { node: null }): Promise<void> {
    this.#refused = true;
    if (holder) this.settings.request.blockedBy?.(holder);
    if (!this.#once) await this.#unlessGivenUp(change, LOOK_AGAIN_MS * (0.9 + randomInt(200) / 1_000));
    forget();
  }

  /** `undefined` when the caller has given up first, or when it takes too long. */
  #unlessGivenUp<T>(promise: Promise<T>, atMostMs = Infinity): Promise<T | undefined> {
    promise.catch(() => undefined);
    if (this.#givenUp) return Promise.resolve(undefined);
    const over = new Promise<undefined>((resolve) => (this.#wakeUp = () => resolve(undefined)));
    const timer = this.settings.request.deadline.clock.schedule(atMostMs, this.#wakeUp);
    return Promise.race([promise, over]).finally(() => timer.cancel());
  }
}

/** Leaving that goes on in the background is no reason not to say that somebody else has the key. */
function unlessItGoesOn(error: unknown): void {
  if (isFinal(error)) throw error;
}
