import { randomUUID } from 'node:crypto';
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
  /** Text of the PING by which the present connection is tested. Empty without a connection. */
  #proofText = '';
  #mixUpError: Error | undefined;

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
      void this.#proveReplies();
    };
    const onClose = (): void => {
      this.#proofText = '';
      this.#mixUpError = undefined;
      this.state.becomeDisconnected('the connection is lost');
    };
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
    if (this.#mixUpError) return this.#mixUpError;
    const { status } = this.#client;
    if (status === 'end')
      return new NotSentError(
        'Connection is closed: the given client was ended, or has given up to reconnect, as its settings say: call its `connect`',
      );
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
   * Makes the client usable once it has answered a PING with the text of that PING. A client may give each command the
   * reply of an earlier one after a reconnection, and such a reply could look like a grant. That is seen with node-redis
   * 5: https://github.com/redis/node-redis/issues/1593. Proxies answer PONG by themselves, and a user without the right
   * to PING gets an error: both are accepted.
   */
  async #proveReplies(): Promise<void> {
    const proofText = randomUUID();
    this.#proofText = proofText;
    this.#mixUpError = undefined;
    const isExpected = (reply: unknown): boolean => [proofText, 'PONG'].includes(String(reply));
    const onError = (error: unknown): boolean | undefined => (isErrorReply(error) ? true : undefined);
    const isProved = await this.#client.call('PING', proofText).then(isExpected, onError);
    // The client's `commandTimeout` may have ended the PING, while its connection goes on.
    if (isProved === undefined) await pause(this.clock, this.timeoutMs, { background: true });
    if (this.#proofText !== proofText || this.state.isClosed) return;
    if (isProved === undefined) return this.#proveReplies();
    if (isProved) {
      this.state.health.report('up');
      this.state.becomeUsable();
      return;
    }
    this.#mixUpError = new NotSentError(
      'the given client mixes up the replies of its commands, as node-redis 5 may after a reconnection: update it, or give the locks a client of their own',
    );
    this.state.becomeDisconnected(this.#mixUpError.message);
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
      if (isAnswered && !state.isUsable && !this.#mixUpError) state.onReply(true);
      if (!state.isUsable) await pause(this.clock, this.timeoutMs, { background: true });
    }
    this.#isAwaitingSignOfLife = false;
  }
}
