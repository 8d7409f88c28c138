import { ReplyTimeouts, systemClock } from '../../../core/index.js';
import { maxSilenceMs } from '../session-times.js';
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
  readonly operation: string;
  readonly sentAt: number;
  readonly resolve: (payload: Payload) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Maximum number of a request. The client library numbers requests with 31 bits and never starts again. After the last
 * number it throws where no caller can catch the error. A connection ends before that, and leaves some numbers for the
 * requests in the library's queue.
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
  /** Resolves to the reason when the connection has ended. */
  readonly ended: Promise<Error>;
  /** Time before anything was sent. */
  readonly openedAt = systemClock.now();
  /** Listeners that are called once, when a watch fires or the connection ends. */
  readonly watches = new WatchList();
  /** Listener that is called when the leader has answered a request, with the time at which the request was sent. */
  onLeaderAnswer: (sentAt: number) => void = () => undefined;
  readonly #client: Client;
  readonly #pending = new Set<PendingRequest>();
  #endReason: Error | undefined;
  #onEnd: (error: Error) => void = () => undefined;
  #firstFailure: Error | undefined;
  /** Time of the last answer; before the first one, `openedAt`. */
  heardAt = this.openedAt;
  /** Time-outs of requests, created with the first one: by then the server has set the session's time-out. */
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

  /** Time-out of the session, set by the server, which may allow more or less than was requested. */
  get sessionMs(): number {
    return this.#client.getSessionTimeout();
  }

  /**
   * Sends a request at once. Answers arrive in the order of the calls.
   * @throws ConnectionLostError, ServerRefusalError
   */
  send(name: OperationName, fields: RequestFields, operation: string = name): Promise<Payload> {
    return new Promise((resolve, reject) => {
      const request = this.settings.library.createRequest(name, fields);
      const isUsedUp = this.#client.connectionManager.xid >= MAX_REQUEST_NUMBER;
      if (isUsedUp) this.end(new Error('the numbers of its requests are nearly used up'));
      if (this.#endReason) return reject(this.#endReason);
      const pending: PendingRequest = { name, operation, sentAt: systemClock.now(), resolve, reject };
      this.#pending.add(pending);
      (this.#timeouts ??= this.#createTimeouts()).start();
      this.#batchWrites();
      this.#send(pending, request);
    });
  }

  /** Ends the connection without notifying the server. */
  end(reason?: Error): void {
    this.#firstFailure ??= reason;
    if (this.#endReason) return;
    this.#endReason = this.#toEndReason();
    const { connectTimeoutHandler, socket } = this.#client.connectionManager;
    clearTimeout(connectTimeoutHandler ?? undefined);
    socket.destroy();
    this.#onEnd(this.#endReason);
    for (const { reject } of this.#pending) reject(this.#endReason);
    this.#pending.clear();
    this.watches.fireAll('lost');
  }

  /** Sends a request. When the library throws, the request may have been sent, so the connection ends. */
  #send(pending: PendingRequest, request: JuteRequest): void {
    try {
      this.#client.connectionManager.queue(request, (error, answer) => {
        this.heardAt = systemClock.now();
        if (error) this.#onError(pending, error.code);
        else this.#onAnswer(pending, answer.payload);
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

  #onAnswer(pending: PendingRequest, payload: Payload): void {
    if (!this.#pending.delete(pending)) return;
    if (isAnsweredByLeader(pending.name)) this.onLeaderAnswer(pending.sentAt);
    pending.resolve(payload);
  }

  #onError(pending: PendingRequest, code: number): void {
    const refusal = new ServerRefusalError(code, pending.operation);
    if (code === SESSION_EXPIRED) this.end(new SessionExpiredError());
    else if (code === SESSION_MOVED) this.end(refusal);
    else if (code === CONNECTION_LOSS) this.end();
    else if (this.#pending.delete(pending)) pending.reject(refusal);
  }

  #onUnknownError(code: number): void {
    const [oldest] = this.#pending;
    if (oldest) this.#onError(oldest, code);
  }

  /** Sends all requests of one event loop iteration in one write. */
  #batchWrites(): void {
    const { socket } = this.#client.connectionManager;
    if (socket.writableCorked > 0) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  #createTimeouts(): ReplyTimeouts {
    const maxMs = maxSilenceMs(this.sessionMs, this.settings.requestTimeoutMs);
    const nextDueAt = (): number => {
      const [oldest] = this.#pending;
      return (oldest?.sentAt ?? Infinity) + maxMs;
    };
    const onOverdue = (): void => this.end(new Error(`no answer within ${Math.round(maxMs)} ms`));
    return new ReplyTimeouts(systemClock, maxMs, nextDueAt, onOverdue);
  }
}
