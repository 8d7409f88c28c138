import {
  type BackendHealth,
  isLockError,
  NotSentError,
  ReportedHealth,
  retryUntilAnswered,
  systemClock,
  type Timer,
} from '../../../core/index.js';
import { DatabaseError, catchFailure, isRefusedValueError, createRefusedValueError } from './database-error.js';

const ADVICE_LIFETIME_MS = 600_000;

/**
 * Health of a database. While the database does not answer, it is probed in the background.
 */
export class DatabaseHealth extends ReportedHealth {
  #isProbing = false;
  #hasEnded = false;
  readonly #replacementCountByConnection = new Map<string, number>();
  #adviceTimer: Timer | undefined;

  /** @param probe contacts the database, reports the outcome to this health, and rejects when no answer comes */
  constructor(private readonly probe: () => Promise<unknown>) {
    super();
  }

  /**
   * Settles as `answer` does. Reports `up` for a result or a refused value. Reports nothing for a configuration error,
   * a request that was not sent, or another error reply of the server: the core counts failed requests. Reports `down`
   * for all other errors.
   *
   * @param isFromDatabase returns false when no statement was sent: the result does not show that the database is up
   * @throws LockConfigurationError for a refused value
   */
  reportOutcomeOf<T>(answer: Promise<T>, isFromDatabase = (): boolean => true): Promise<T> {
    return answer.then(
      (value) => {
        if (isFromDatabase()) this.report('up');
        return value;
      },
      (error: unknown) => {
        if (isRefusedValueError(error)) {
          this.report('up');
          throw createRefusedValueError(error);
        }
        const isUnrelatedToDatabase = isLockError(error, 'LOCK_CONFIGURATION') || error instanceof NotSentError;
        const isServerAnswer = error instanceof DatabaseError && error.isServerAnswer;
        if (!isUnrelatedToDatabase && !isServerAnswer) this.reportDown(String(error));
        throw error;
      },
    );
  }

  reportDown(trouble: string): void {
    this.report('down', trouble);
    this.probeUntilAnswered();
  }

  reportReplacement(connectionText: string): void {
    const replacementCount = (this.#replacementCountByConnection.get(connectionText) ?? 0) + 1;
    this.#replacementCountByConnection.set(connectionText, replacementCount);
    const replacementText = `${connectionText} was silent and has been replaced${replacementCount === 1 ? '' : ` (${replacementCount} times)`}`;
    this.setAdvice(
      connectionText,
      `${replacementText}: something on the way to the database may be forgetting idle connections`,
    );
    this.#adviceTimer?.cancel();
    this.#adviceTimer = systemClock.schedule(ADVICE_LIFETIME_MS, () => this.#clearReplacements(), { background: true });
  }

  probeUntilAnswered(): void {
    if (this.#isProbing) return;
    this.#isProbing = true;
    const isAnswering = async (): Promise<boolean> => (await catchFailure(this.probe())) === undefined;
    void retryUntilAnswered(isAnswering, () => !this.#hasEnded).then(() => (this.#isProbing = false));
  }

  end(): void {
    this.#hasEnded = true;
    this.#adviceTimer?.cancel();
  }

  #clearReplacements(): void {
    for (const connectionText of this.#replacementCountByConnection.keys()) this.setAdvice(connectionText, undefined);
    this.#replacementCountByConnection.clear();
  }

  override report(status: BackendHealth['status'], trouble?: string): void {
    if (!this.#hasEnded) super.report(status, trouble);
  }
}
