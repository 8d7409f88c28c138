import {
  type BackendHealth,
  isLockError,
  NotSentError,
  ReportedHealth,
  retryUntilAnswered,
  systemClock,
  type Timer,
} from '../../../core/index.js';
import { DatabaseError, failureOf, isAboutValue, refusedValueError } from './database-error.js';

/** How long `health` names a connection that died silently. */
const REMEMBERED_MS = 600_000;

/**
 * Reports how the last statement ended. A database that does not answer is asked in the background until it does:
 * holders, and probes that read this health, must learn soon that it is back.
 */
export class DatabaseHealth extends ReportedHealth {
  #asking = false;
  #over = false;
  readonly #replaced = new Map<string, number>();
  #forgetting: Timer | undefined;

  /** @param ask rejects while there is no answer, and has that noted */
  constructor(private readonly ask: () => Promise<unknown>) {
    super();
  }

  /**
   * Settles as `answer` does, and reports it. A wrong table, and a request that was not sent, say nothing about the
   * database, and one that refuses a value serves. A server that refuses for other reasons is there: whether it carries
   * anything out shows in how requests end, and the core counts those. @throws LockConfigurationError for such a value
   *
   * @param isFromDatabase asked at the end: false for an answer that this process gave without a statement
   */
  note<T>(answer: Promise<T>, isFromDatabase = (): boolean => true): Promise<T> {
    return answer.then(
      (value) => {
        if (isFromDatabase()) this.report('up');
        return value;
      },
      (error: unknown) => {
        if (isAboutValue(error)) {
          this.report('up');
          throw refusedValueError(error);
        }
        const saysNothing = isLockError(error, 'LOCK_CONFIGURATION') || error instanceof NotSentError;
        const isAnswer = error instanceof DatabaseError && error.isAnswer;
        if (!saysNothing && !isAnswer) this.down(String(error));
        throw error;
      },
    );
  }

  down(trouble: string): void {
    this.report('down', trouble);
    this.recover();
  }

  /** A connection died silently and a new one serves. The operator reads of it for a while. */
  replaced(connection: string): void {
    const times = (this.#replaced.get(connection) ?? 0) + 1;
    this.#replaced.set(connection, times);
    const how = `${connection} was silent and has been replaced${times === 1 ? '' : ` (${times} times)`}`;
    this.advise(connection, `${how}: something on the way to the database may be forgetting idle connections`);
    this.#forgetting?.cancel();
    this.#forgetting = systemClock.schedule(REMEMBERED_MS, () => this.#forget(), { background: true });
  }

  recover(): void {
    if (this.#asking) return;
    this.#asking = true;
    const ask = async (): Promise<boolean> => (await failureOf(this.ask())) === undefined;
    void retryUntilAnswered(ask, () => !this.#over).then(() => (this.#asking = false));
  }

  end(): void {
    this.#over = true;
    this.#forgetting?.cancel();
  }

  #forget(): void {
    for (const connection of this.#replaced.keys()) this.advise(connection, undefined);
    this.#replaced.clear();
  }

  override report(status: BackendHealth['status'], trouble?: string): void {
    if (!this.#over) super.report(status, trouble);
  }
}
