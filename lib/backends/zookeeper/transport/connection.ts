import { ReplyTimeouts, systemClock } from '../../../core/index.js';
import { getMaxSilenceMs } from '../session-times.js';
import { connectOnce, type ZooKeeperConnectionSettings, type SessionIdentity } from './single-connection-client.js';
import { WatchList } from './watch-list.js';
import {
  CONNECTION_LOSS,
  ConnectionLostError,
  ServerRefusalError,
  SESSION_EXPIRED,
  SESSION_MOVED,
  SessionExpiredError,
  SessionRefusedError,
} from '../error.js';
import {
  type Client,
  isAnsweredByLeader,
  type JuteRequest,
  type OperationName,
  type Payload,
  type RequestFields,
} from './wire.js';

interface PendingRequest {
  readonly name: OperationName;
  readonly operationText: string;
  readonly sentAt: number;
  readonly resolve: (payload: Payload) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Request number at which the connection is replaced. The client library numbers requests with 31 bits, and after the
 * last number it throws where no caller can catch the error. The last 2^20 numbers are left for requests in the
 * library's queue.
 */
const MAX_REQUEST_NUMBER = 2 ** 31 - 2 ** 20;

/**
 * Connection to one server over TCP. By itself node-zookeeper-client 1.1.3 waits without a limit for a silent server,
 * and sends abandoned requests late. It loses callbacks, and ends the process on half a frame or an unknown error. This
 * class ends a connection when an answer is overdue or does not fit. The end rejects all requests and fires all
 * watches.
 */
export class ZooKeeperConnection {
  /**
   * Resolves when the server has accepted the session.
   * @throws SessionExpiredError, SessionRefusedError, ConnectionLostError
   */
  readonly ready: Promise<void>;
  readonly ended: Promise<Error>;
  /** Time at which the connection was begun, before anything was sent. */
  readonly openedAt = systemClock.now();
  readonly watches = new WatchList();
  onLeaderAnswer: (sentAt: number) => void = () => undefined;
  readonly #client: Client;
  readonly #pendingRequests = new Set<PendingRequest>();
  #endReason: Error | undefined;
  #onEnd: (error: Error) => void = () => undefined;
  #firstFailure: Error | undefined;
  /** Time of the server's last answer, or `openedAt`. */
  lastReplyAt = this.openedAt;
  /** Time-outs of requests, created with the first one, because the server has set the session's time-out by then. */
  #timeouts: ReplyTimeouts | undefined;

  constructor(
    private readonly settings: ZooKeeperConnectionSettings,
    handshakeMs: number,
  ) {
    this.ended = new Promise((resolve) => (this.#onEnd = resolve));
    const onHandshakeTimeout = (): void => this.end(new Error(`no handshake within ${Math.round(handshakeMs)} ms`));
    const timeout = systemClock.schedule(handshakeMs, onHandshakeTimeout);
    let onReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve, reject) => {
      onReady = resolve;
      void this.ended.then(reject);
    });
    this.ready = ready.finally(() => timeout.cancel());
    this.#client = connectOnce(settings, {
      onReady: () => onReady(),
      onEnd: (reason) => this.end(reason),
      onError: (error) => (this.#firstFailure ??= error),
      onEvent: (path, event) => this.watches.fire(path, event),
      onUnknownError: (code) => this.#onUnknownError(code),
    });
  }

  get isAlive(): boolean {
    return this.#endReason === undefined;
  }

  get identity(): SessionIdentity {
    return { id: this.#client.getSessionId(), password: this.#client.getSessionPassword() };
  }

  /** Time-out of the session as the server set it, which may be more or less than requested. */
  get negotiatedTtlMs(): number {
    return this.#client.getSessionTimeout();
  }

  /**
   * Sends a request, and resolves to the server's answer. Answers arrive in the order of the calls.
   * @throws ConnectionLostError, ServerRefusalError
   */
  send(name: OperationName, fields: RequestFields, operationText: string = name): Promise<Payload> {
    return new Promise((resolve, reject) => {
      const request = this.settings.library.createRequest(name, fields);
      const areNumbersUsedUp = this.#client.connectionManager.xid >= MAX_REQUEST_NUMBER;
      if (areNumbersUsedUp) this.end(new Error('the numbers of its requests are nearly used up'));
      if (this.#endReason) return reject(this.#endReason);
      const pendingRequest: PendingRequest = { name, operationText, sentAt: systemClock.now(), resolve, reject };
      this.#pendingRequests.add(pendingRequest);
      (this.#timeouts ??= this.#createTimeouts()).start();
      this.#batchWrites();
      this.#passToLibrary(pendingRequest, request);
    });
  }

  /** Ends the connection, but not the session. */
  end(reason?: Error): void {
    this.#firstFailure ??= reason;
    if (this.#endReason) return;
    this.#endReason = this.#toEndReason();
    const { connectTimeoutHandler, socket } = this.#client.connectionManager;
    clearTimeout(connectTimeoutHandler ?? undefined);
    socket.destroy();
    this.#onEnd(this.#endReason);
    for (const { reject } of this.#pendingRequests) reject(this.#endReason);
    this.#pendingRequests.clear();
    this.watches.fireAll('lost');
  }

  /** When the library throws, the request may have been sent, so the connection ends. */
  #passToLibrary(pendingRequest: PendingRequest, request: JuteRequest): void {
    try {
      this.#client.connectionManager.queue(request, (error, answer) => {
        this.lastReplyAt = systemClock.now();
        if (error) this.#onError(pendingRequest, error.code);
        else this.#onAnswer(pendingRequest, answer.payload);
      });
    } catch (error) {
      this.end(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #toEndReason(): Error {
    const reason = this.#firstFailure;
    if (reason instanceof SessionExpiredError || reason instanceof SessionRefusedError) return reason;
    const { host, port } = this.settings.server;
    return new ConnectionLostError(`${host}:${port}: ${reason?.message ?? 'the server closed the connection'}`);
  }

  #onAnswer(pendingRequest: PendingRequest, payload: Payload): void {
    if (!this.#pendingRequests.delete(pendingRequest)) return;
    if (isAnsweredByLeader(pendingRequest.name)) this.onLeaderAnswer(pendingRequest.sentAt);
    pendingRequest.resolve(payload);
  }

  #onError(pendingRequest: PendingRequest, code: number): void {
    const refusal = new ServerRefusalError(code, pendingRequest.operationText);
    if (code === SESSION_EXPIRED) this.end(new SessionExpiredError());
    else if (code === SESSION_MOVED) this.end(refusal);
    else if (code === CONNECTION_LOSS) this.end();
    else if (this.#pendingRequests.delete(pendingRequest)) pendingRequest.reject(refusal);
  }

  #onUnknownError(code: number): void {
    const [oldestRequest] = this.#pendingRequests;
    if (oldestRequest) this.#onError(oldestRequest, code);
  }

  #batchWrites(): void {
    const { socket } = this.#client.connectionManager;
    if (socket.writableCorked > 0) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  #createTimeouts(): ReplyTimeouts {
    const maxMs = getMaxSilenceMs(this.negotiatedTtlMs, this.settings.requestTimeoutMs);
    const getNextDueAt = (): number => {
      const [oldestRequest] = this.#pendingRequests;
      return (oldestRequest?.sentAt ?? Infinity) + maxMs;
    };
    const onOverdue = (): void => this.end(new Error(`no answer within ${Math.round(maxMs)} ms`));
    return new ReplyTimeouts(systemClock, maxMs, getNextDueAt, onOverdue);
  }
}
