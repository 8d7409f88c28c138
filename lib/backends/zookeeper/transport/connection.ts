import { ReplyTimeouts, systemClock } from '../../../core/index.js';
import { silenceMsOf } from '../session-times.js';
import { connectOnce, type Handshake, type SessionTicket } from './single-connection-client.js';
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
  isOfLeader,
  type JuteRequest,
  type OperationName,
  type Payload,
  type RequestFields,
} from './wire.js';

interface Pending {
  readonly name: OperationName;
  readonly operation: string;
  readonly sentAt: number;
  readonly resolve: (payload: Payload) => void;
  readonly reject: (error: Error) => void;
}

/**
 * The client numbers its requests with 31 bits and never begins again. When they are used up it throws where nobody can
 * catch it. A connection ends before that, and leaves some numbers for the requests in the client's queue.
 */
const NUMBERS_PER_CONNECTION = 2 ** 31 - 2 ** 20;

/**
 * One TCP connection. By itself node-zookeeper-client 1.1.3 waits for ever on a silent server and sends abandoned
 * requests late. It forgets callbacks, and ends the process on half a frame or an unknown error. Here a connection is
 * cut when an answer is overdue or makes no sense. Its end rejects all requests and fires all watches.
 */
export class ZooKeeperConnection {
  /** Resolves once we are in the session. @throws SessionExpiredError, SessionRefusedError, ConnectionLostError */
  readonly ready: Promise<void>;
  /** Resolves to the reason when the connection is over. */
  readonly ended: Promise<Error>;
  /** Before anything was sent. */
  readonly openedAt = systemClock.now();
  /** Listeners that are called once, when a watch fires or the connection ends. */
  readonly watches = new WatchList();
  /** Called when the leader has answered a request, with the time at which it was sent. */
  onLeaderAnswer: (sentAt: number) => void = () => undefined;
  readonly #client: Client;
  readonly #pending = new Set<Pending>();
  #end: Error | undefined;
  #onEnd: (error: Error) => void = () => undefined;
  #trouble: Error | undefined;
  /** When a question was last answered; before that, `openedAt`. */
  heardAt = this.openedAt;
  /** Made with the first request: the server has set the session's time-out by then. */
  #timeouts: ReplyTimeouts | undefined;

  constructor(
    private readonly handshake: Handshake,
    handshakeMs: number,
  ) {
    this.ended = new Promise((resolve) => (this.#onEnd = resolve));
    const late = (): void => this.cut(new Error(`no handshake within ${Math.round(handshakeMs)} ms`));
    const timeout = systemClock.schedule(handshakeMs, late);
    let onReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve, reject) => {
      onReady = resolve;
      void this.ended.then(reject);
    });
    this.ready = ready.finally(() => timeout.cancel());
    this.#client = connectOnce(handshake, {
      onReady: () => onReady(),
      onOver: (why) => this.cut(why),
      onError: (error) => (this.#trouble ??= error),
      onEvent: (path, event) => this.watches.fire(path, event),
      onUnknownError: (code) => this.#onUnknownError(code),
    });
  }

  get alive(): boolean {
    return this.#end === undefined;
  }

  get ticket(): SessionTicket {
    return { id: this.#client.getSessionId(), password: this.#client.getSessionPassword() };
  }

  /** Set by the server, which may allow more or less than what was asked for. */
  get sessionMs(): number {
    return this.#client.getSessionTimeout();
  }

  /** Sends at once. Answers come in the order of the calls. @throws ConnectionLostError, ServerRefusalError */
  ask(name: OperationName, fields: RequestFields, operation: string = name): Promise<Payload> {
    return new Promise((resolve, reject) => {
      const request = this.handshake.wire.request(name, fields);
      const usedUp = this.#client.connectionManager.xid >= NUMBERS_PER_CONNECTION;
      if (usedUp) this.cut(new Error('the numbers of its requests are nearly used up'));
      if (this.#end) return reject(this.#end);
      const pending: Pending = { name, operation, sentAt: systemClock.now(), resolve, reject };
      this.#pending.add(pending);
      (this.#timeouts ??= this.#watchSilence()).start();
      this.#cork();
      this.#send(pending, request);
    });
  }

  /** Ends it without a word to the server. */
  cut(why?: Error): void {
    this.#trouble ??= why;
    if (this.#end) return;
    this.#end = this.#lastError();
    const { connectTimeoutHandler, socket } = this.#client.connectionManager;
    clearTimeout(connectTimeoutHandler ?? undefined);
    socket.destroy();
    this.#onEnd(this.#end);
    for (const { reject } of this.#pending) reject(this.#end);
    this.#pending.clear();
    this.watches.fireAll('lost');
  }

  /** When the client throws, the request may have been sent, or not: the connection ends. */
  #send(pending: Pending, request: JuteRequest): void {
    try {
      this.#client.connectionManager.queue(request, (error, answer) => {
        this.heardAt = systemClock.now();
        if (error) this.#onError(pending, error.code);
        else this.#onAnswer(pending, answer.payload);
      });
    } catch (error) {
      this.cut(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #lastError(): Error {
    const why = this.#trouble;
    if (why instanceof SessionExpiredError || why instanceof SessionRefusedError) return why;
    const { host, port } = this.handshake.server;
    return new ConnectionLostError(`${host}:${port}: ${why?.message ?? 'the server closed the connection'}`);
  }

  #onAnswer(pending: Pending, payload: Payload): void {
    if (!this.#pending.delete(pending)) return;
    if (isOfLeader(pending.name)) this.onLeaderAnswer(pending.sentAt);
    pending.resolve(payload);
  }

  #onError(pending: Pending, code: number): void {
    const refusal = new ServerRefusalError(code, pending.operation);
    if (code === SESSION_EXPIRED) this.cut(new SessionExpiredError());
    else if (code === SESSION_MOVED) this.cut(refusal);
    else if (code === CONNECTION_LOSS) this.cut();
    else if (this.#pending.delete(pending)) pending.reject(refusal);
  }

  #onUnknownError(code: number): void {
    const [oldest] = this.#pending;
    if (oldest) this.#onError(oldest, code);
  }

  /** All requests of one turn go out in one write. */
  #cork(): void {
    const { socket } = this.#client.connectionManager;
    if (socket.writableCorked > 0) return;
    socket.cork();
    process.nextTick(() => socket.uncork());
  }

  #watchSilence(): ReplyTimeouts {
    const silenceMs = silenceMsOf(this.sessionMs, this.handshake.requestTimeoutMs);
    const nextDueAt = (): number => {
      const [oldest] = this.#pending;
      return (oldest?.sentAt ?? Infinity) + silenceMs;
    };
    const onOverdue = (): void => this.cut(new Error(`no answer within ${Math.round(silenceMs)} ms`));
    return new ReplyTimeouts(systemClock, silenceMs, nextDueAt, onOverdue);
  }
}
