import { type Clock, NotSentError, pause } from '../../../core/index.js';
import { isErrorReply } from '../error.js';
import { addClientListeners } from './client-events.js';
import type { ClientLifecycle } from './client-lifecycle.js';
import { type ClientState, createClosedError } from './client-state.js';
import type { RedisClient } from './redis-client.js';

/** Lifecycle of the application's client, which the backend neither replaces nor disconnects. */
export class GivenClientLifecycle implements ClientLifecycle {
  /** Private, because printing a service must not print the password that the client has. */
  readonly #client: RedisClient;
  #removeListeners: () => void = () => undefined;
  #isAwaitingSignOfLife = false;

  constructor(
    client: RedisClient,
    private readonly state: ClientState,
    private readonly timeoutMs: number,
    private readonly clock: Clock,
  ) {
    this.#client = client;
  }

  get client(): RedisClient {
    return this.#client;
  }

  addListeners(): void {
    const onReady = (): void => {
      this.state.becomeReady();
      this.state.health.report('up');
      this.state.becomeUsable();
    };
    const onClose = (): void => this.state.becomeDisconnected('the connection is lost');
    const listeners = { connecting: () => undefined, ready: onReady, close: onClose, end: onClose };
    this.#removeListeners = addClientListeners(this.#client, listeners);
    if (this.#client.status === 'ready') onReady();
  }

  /** Does nothing: the application connects its client, or the first request does. */
  async startConnecting(): Promise<void> {
    return undefined;
  }

  ensureConnecting(): Error | undefined {
    if (this.state.isClosed) return createClosedError();
    const { status } = this.#client;
    if (status === 'end') return new NotSentError('Connection is closed: the given client was ended');
    if (status === 'wait') this.#client.connect().catch(() => undefined);
    return undefined;
  }

  /** Does nothing: a failed test would replace the client, and the application's client is never replaced. */
  testIdleClient(): void {
    return undefined;
  }

  onSilence(error: Error): void {
    this.state.becomeUnusable();
    void this.#awaitSignOfLife();
    this.state.health.report('down', error.message);
  }

  onConnectTimeout(error: Error): void {
    this.state.health.report('down', error.message);
  }

  createNoAnswerError(): Error {
    return new Error(`no answer within ${this.timeoutMs} ms`);
  }

  async close(): Promise<void> {
    if (this.state.isClosed) return;
    this.state.close();
    this.#removeListeners();
  }

  /**
   * Sends a PING once per time-out until the server answers. The late replies to earlier commands are no reliable sign,
   * because the client's `commandTimeout` may have ended these commands.
   */
  async #awaitSignOfLife(): Promise<void> {
    if (this.#isAwaitingSignOfLife) return;
    this.#isAwaitingSignOfLife = true;
    const { state } = this;
    while (!state.isUsable && state.isReady && !state.isClosed) {
      const isAnswered = await this.#client.call('PING').then(() => true, isErrorReply);
      if (isAnswered && !state.isUsable) state.onReply(true);
      if (!state.isUsable) await pause(this.clock, this.timeoutMs, { background: true });
    }
    this.#isAwaitingSignOfLife = false;
  }
}
