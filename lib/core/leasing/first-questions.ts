import { LinkedQueue } from '../kit/linked-queue.js';
import { type FirstQuestion, SILENCE_MS } from './question.js';
import type { Clock, Timer } from '../time/timers.js';

/**
 * The most first questions of a process under way at a time. With all that they need, 100,000 would take 0.4 GB; those
 * that stand behind take half of that, and a server is no slower for it.
 */
const MOST_ASKED = 5_000;

/** Those that are not answered yet: a bounded number are asked, the others stand behind. One timer looks after all. */
export class FirstQuestions {
  /** In the order of arrival. */
  readonly #unasked = new LinkedQueue<FirstQuestion>();
  /** In the order in which they were asked. */
  readonly #fresh = new LinkedQueue<FirstQuestion>();
  /** A store lets them wait: each until its own deadline. */
  readonly #silent = new LinkedQueue<FirstQuestion>();
  #asked = 0;
  #timer: Timer | undefined;

  add(first: FirstQuestion): void {
    // An inherited queue entry stands on the server, and would have to be cleaned up.
    if (this.#asked < MOST_ASKED || first.request.queueEntry?.inherited === true) this.#begin(first);
    else this.#unasked.push(first);
    if (!this.#timer) this.#lookIn(SILENCE_MS, first.clock);
  }

  /** Whether it was here. */
  delete(first: FirstQuestion): boolean {
    if (first.queue === undefined) return false;
    for (const queue of [this.#unasked, this.#fresh, this.#silent]) queue.delete(first);
    return true;
  }

  callOff(reason: unknown): void {
    for (const queue of [this.#unasked, this.#fresh, this.#silent]) {
      for (let first = queue.first; first; first = queue.first) first.callOff(reason);
    }
  }

  /** An asked one is answered, or failed; a contender may wait for it by now. */
  onAnswer(): void {
    this.#asked -= 1;
    const next = this.#unasked.first;
    if (!next || this.#asked >= MOST_ASKED) return;
    this.#unasked.delete(next);
    this.#begin(next);
  }

  #begin(first: FirstQuestion): void {
    this.#asked += 1;
    this.#fresh.push(first);
    first.begin();
  }

  #lookIn(delayMs: number, clock: Clock): void {
    this.#timer = clock.schedule(delayMs, () => this.#look(clock), { background: true });
  }

  #look(clock: Clock): void {
    this.#timer = undefined;
    for (let first = this.#unasked.first; first;) {
      const { after } = first;
      first.onDelay();
      first = after;
    }
    const silentSince = clock.now() - SILENCE_MS;
    for (let first = this.#fresh.first; first && first.askedAt <= silentSince; first = this.#fresh.first) {
      this.#fresh.delete(first);
      this.#silent.push(first);
      first.onSilence();
    }
    if (this.#unasked.first) this.#lookIn(SILENCE_MS, clock);
    else if (this.#fresh.first) this.#lookIn(this.#fresh.first.askedAt - silentSince, clock);
  }
}
