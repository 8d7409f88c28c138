import { errorText } from '../contract/error-text.js';
import type { Clock } from '../time/timers.js';

/** Number of outcomes after which a new count begins. `describeFailures` uses the present and the previous count. */
const OUTCOMES_PER_COUNT = 50;
const MIN_OUTCOMES_TO_MENTION_FAILURES = 20;
const MAX_UNMENTIONED_FAILURE_SHARE = 0.1;
const MAX_MENTION_AGE_MS = 60_000;

interface Failure {
  readonly text: string;
  readonly at: number;
  readonly clock: Clock;
}

/** Counts which of the latest requests to a backend failed. */
export class RecentOutcomes {
  #lastFailure: Failure | undefined;
  #outcomeCount = 0;
  #failureCount = 0;
  #previousFailureCount = 0;
  #hasPreviousCount = false;

  get lastFailure(): Failure | undefined {
    return this.#lastFailure;
  }

  countSuccess(): void {
    this.#countOutcome(0);
  }

  countFailure(error: unknown, clock: Clock): void {
    this.#lastFailure = { text: errorText(error), at: clock.now(), clock };
    this.#countOutcome(1);
  }

  /** Returns `undefined` while few of the latest requests have failed. */
  describeFailures(): string | undefined {
    if (!this.#lastFailure) return undefined;
    const { text, at, clock } = this.#lastFailure;
    const failureCount = this.#failureCount + this.#previousFailureCount;
    const outcomeCount = this.#outcomeCount + (this.#hasPreviousCount ? OUTCOMES_PER_COUNT : 0);
    const isMentioned =
      outcomeCount >= MIN_OUTCOMES_TO_MENTION_FAILURES &&
      failureCount > outcomeCount * MAX_UNMENTIONED_FAILURE_SHARE &&
      clock.now() - at <= MAX_MENTION_AGE_MS;
    return isMentioned ? `${failureCount} of the last ${outcomeCount} requests failed: ${text}` : undefined;
  }

  #countOutcome(failures: 0 | 1): void {
    this.#outcomeCount += 1;
    this.#failureCount += failures;
    if (this.#outcomeCount < OUTCOMES_PER_COUNT) return;
    this.#previousFailureCount = this.#failureCount;
    this.#hasPreviousCount = true;
    this.#outcomeCount = this.#failureCount = 0;
  }
}
