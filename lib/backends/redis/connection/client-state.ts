import { NotSentError, ReportedHealth } from '../../../core/index.js';

/** The sender of commands, which is told when its client may be used. */
export interface ClientStateListener {
  /** Called when commands may be sent to the client again. */
  onUsable(): void;
  /** Called when commands must wait. With `error`, the requests that wait now fail with it. */
  onUnusable(error?: Error): void;
  /** Called when the server has answered a new connection for the first time. */
  onFirstSuccess(): void;
}

/** The state of a connection's client, and the health of its server. */
export class ClientState {
  readonly health = new ReportedHealth();
  #isReady = false;
  #isUsable = false;
  #isClosed = false;
  /** Whether the server has answered the present connection without an error. */
  #hasAnswered = false;

  constructor(private readonly listener: ClientStateListener) {}

  /** Whether the client says that it is connected. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether commands may be sent to the client. */
  get isUsable(): boolean {
    return this.#isUsable;
  }

  /** Whether the backend is closed. */
  get isClosed(): boolean {
    return this.#isClosed;
  }

  becomeReady(): void {
    this.#isReady = true;
    this.#hasAnswered = false;
  }

  becomeUsable(): void {
    this.#isUsable = true;
    this.listener.onUsable();
  }

  becomeUnusable(error?: Error): void {
    this.#isUsable = false;
    this.listener.onUnusable(error);
  }

  /** Called when the connection has ended. Fails the waiting requests. */
  becomeDisconnected(reason: string): void {
    this.#isReady = false;
    this.health.report('down', reason);
    this.becomeUnusable(new NotSentError(reason));
  }

  /** Called when the client is about to be replaced. The waiting requests go on waiting. */
  becomeReplaced(): void {
    this.#isReady = false;
    this.becomeUnusable();
  }

  close(): void {
    this.#isClosed = true;
    this.becomeUnusable(closedError());
  }

  /** Called when the server has replied. `isSuccess`: the reply was no error. */
  onReply(isSuccess: boolean): void {
    if (this.#isClosed) return;
    if (this.#isReady && !this.#isUsable) this.becomeUsable();
    if (!isSuccess) return;
    this.health.report('up');
    if (this.#hasAnswered) return;
    this.#hasAnswered = true;
    this.listener.onFirstSuccess();
  }
}

export function closedError(): Error {
  return new Error('the backend is closed');
}
