import { NotSentError, ReportedHealth } from '../../../core/index.js';

export interface ClientStateListener {
  onUsable(): void;
  /** @param error error with which the waiting requests fail; `undefined` when they may go on waiting */
  onUnusable(error?: Error): void;
  /** Called when a new connection gets its first reply that is no error. */
  onFirstSuccess(): void;
}

/** State and health of a `RedisConnection`, also over replacements of its client. Tells when requests may be sent. */
export class ClientState {
  readonly health = new ReportedHealth();
  #isReady = false;
  #isUsable = false;
  #isClosed = false;
  #hasReceivedSuccess = false;

  constructor(private readonly listener: ClientStateListener) {}

  /** Whether the client says that it is connected. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether commands may be sent to the client. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  becomeReady(): void {
    this.#isReady = true;
    this.#hasReceivedSuccess = false;
  }

  becomeUsable(): void {
    this.#isUsable = true;
    this.listener.onUsable();
  }

  becomeUnusable(error?: Error): void {
    this.#isUsable = false;
    this.listener.onUnusable(error);
  }

  becomeDisconnected(reason: string): void {
    this.#isReady = false;
    this.health.report('down', reason);
    this.becomeUnusable(new NotSentError(reason));
  }

  /** Marks the client as replaced. If it was not connected, the time-outs of the waiting requests go on. */
  becomeReplaced(): void {
    const wasReady = this.#isReady;
    this.#isReady = false;
    if (wasReady) this.becomeUnusable();
  }

  close(): void {
    this.#isClosed = true;
    this.becomeUnusable(createClosedError());
  }

  onReply(isSuccess: boolean): void {
    if (this.#isClosed) return;
    if (this.#isReady && !this.#isUsable) this.becomeUsable();
    if (!isSuccess) return;
    this.health.report('up');
    if (this.#hasReceivedSuccess) return;
    this.#hasReceivedSuccess = true;
    this.listener.onFirstSuccess();
  }
}

export function createClosedError(): Error {
  return new Error('the backend is closed');
}
