import { NotSentError, ReportedHealth } from '../../../core/index.js';

/** The sender of commands, which waits while its client is not usable. */
export interface ClientUser {
  /** Called when commands may be sent to the client again. */
  onUsable(): void;
  /** Called when commands must wait. With `error`, the requests that wait now fail with it. */
  onUnusable(error?: Error): void;
  /** Called when the server has answered a new connection for the first time. */
  onFirstSuccess(): void;
}

/** The state of a connection's client, and the health of its server. The user is told when it may send commands. */
export class ClientState {
  readonly health = new ReportedHealth();
  #isReady = false;
  #isUsable = false;
  #isClosed = false;
  #hasAnswered = false;

  constructor(private readonly user: ClientUser) {}

  /** Whether the client is connected, as far as the client knows. */
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
    this.user.onUsable();
  }

  becomeUnusable(error?: Error): void {
    this.#isUsable = false;
    this.user.onUnusable(error);
  }

  /** Called when the connection has ended. The requests that wait fail. */
  becomeDisconnected(reason: string): void {
    this.#isReady = false;
    this.health.report('down', reason);
    this.becomeUnusable(new NotSentError(reason));
  }

  /** Called when the client is given up for another one. The requests that wait go on waiting. */
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
    this.user.onFirstSuccess();
  }
}

export function closedError(): Error {
  return new Error('the backend is closed');
}
