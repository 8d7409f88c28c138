import { randomInt } from 'node:crypto';
import type { ClientHttp2Stream } from 'node:http2';
import { areCredentials, type Credentials, type Given, given, ReportedHealth, Semaphore } from '../../../core/index.js';
import { connectionError, EtcdError, isAboutMember, isTokenExpired } from '../error.js';
import type { ResolvedEtcdOptions } from '../options.js';
import { GrpcConnection } from './grpc-connection.js';
import { type Metadata, HttpError, NotProcessedError, type StreamListener } from './grpc-stream.js';
import {
  type KeyValue,
  METHOD,
  type Outcome,
  type Range,
  readOutcome,
  transaction,
  type Transaction,
} from './messages.js';
import { encode, type Message } from './protobuf.js';

/** A member that is cut off from the leader says so at once, instead of waiting for one. */
const NEEDS_A_LEADER = { hasleader: 'true' };

/** Enough to keep a server busy. With more of them, all of them would be late together. */
const REQUESTS_AT_ONCE = 64;
/** Time-outs that a busy server may take, while it answers others: a retry would make it busier. */
const BUSY = 4;
/** Tries of a request that no server looked at: its connection was being closed in good order. */
const TRIES = 3;

/**
 * Asks one member of the cluster at a time: the next one as soon as a connection ends, stays silent, or leads to a
 * member without a leader or to no etcd at all. Only a caller repeats a request that may have been carried out.
 */
export class EtcdClient {
  readonly health = new ReportedHealth();
  readonly #window = new Semaphore(REQUESTS_AT_ONCE);
  #endpoint: number;
  /** New requests go here. */
  #connection: GrpcConnection | undefined;
  /** Also those that take no new requests, and still answer earlier ones. */
  readonly #connections = new Set<GrpcConnection>();
  #route = 0;
  #token: Promise<string> | undefined;
  #closed = false;

  constructor(private readonly options: ResolvedEtcdOptions) {
    this.#endpoint = randomInt(options.endpoints.length);
  }

  /** Waits here for its turn, and then for as long as the server is merely busy. */
  async transact(request: Transaction): Promise<Outcome> {
    const longestMs = this.options.requestTimeoutMs * BUSY;
    return readOutcome(await this.#window.run(() => this.#call(METHOD.txn, transaction(request), longestMs)));
  }

  /** What is in each of the ranges, in one reading. Waits here for its turn. */
  async list(...ranges: readonly Range[]): Promise<readonly (readonly KeyValue[])[]> {
    const request = transaction({ steps: ranges.map((list) => ({ list })) });
    return readOutcome(await this.#window.run(() => this.call(METHOD.txn, request))).ranges();
  }

  /** Comes before all others: a session depends on it. */
  async read(names: readonly string[]): Promise<Outcome> {
    return readOutcome(await this.call(METHOD.txn, transaction({ steps: names.map((get) => ({ get })) })));
  }

  /**
   * Never takes longer than the time-out, but for a new token. Rejects with an `EtcdError` where there was an answer.
   */
  call(method: string, request: Buffer): Promise<Message> {
    return this.#call(method, request, this.options.requestTimeoutMs);
  }

  /** Changes with each connection and each token. A stream keeps the one that it was opened with. */
  get route(): number {
    return this.#route;
  }

  /** Rejects where no stream came to be: `listener` hears nothing then. */
  async stream(method: string, listener: StreamListener): Promise<ClientHttp2Stream> {
    const headers = await this.#metadata();
    return this.#connect().stream(method, headers, listener);
  }

  close(): void {
    this.#closed = true;
    for (const connection of this.#connections) connection.end(new Error('the backend is closed'));
  }

  async #call(method: string, request: Buffer, longestMs: number): Promise<Message> {
    const headers = await this.#metadata();
    const token = this.#token;
    try {
      return await this.#ask(method, request, headers, longestMs);
    } catch (error) {
      if (!token || !isTokenExpired(error)) throw error;
      if (this.#token === token) this.#token = undefined;
      return this.#ask(method, request, await this.#metadata(), longestMs);
    }
  }

  /** A refusal that concerns the member itself is final when the members of all endpoints have refused. */
  async #ask(method: string, request: Buffer, headers: Metadata, longestMs: number): Promise<Message> {
    const refusing = new Set<string>();
    for (let tries = 1; ; tries += 1) {
      const connection = this.#connect();
      try {
        const reply = await connection.call(method, request, headers, longestMs);
        if (this.#connection === connection) this.health.report('up');
        return reply;
      } catch (error) {
        if (error instanceof EtcdError && isCutOff(error)) connection.end(error);
        if (error instanceof HttpError) this.#turnFrom(connection, error);
        if (isAboutMember(error) && refusing.add(connection.url).size < new Set(this.options.endpoints).size) {
          this.#turnFrom(connection, error);
          continue;
        }
        if (!(error instanceof NotProcessedError) || tries === TRIES) throw error;
      }
    }
  }

  #connect(): GrpcConnection {
    if (this.#closed) throw new Error('the backend is closed');
    if (this.#connection?.leaving === true) this.#turnFrom(this.#connection);
    try {
      return (this.#connection ??= this.#open());
    } catch (error) {
      // Only the answer of `tls` can be wrong here.
      this.health.report('down', connectionError(error).message);
      throw error;
    }
  }

  #open(): GrpcConnection {
    const { endpoints, tls, requestTimeoutMs } = this.options;
    const connection = new GrpcConnection(endpoints[this.#endpoint] ?? '', tls(), requestTimeoutMs, (reason) => {
      this.#connections.delete(connection);
      this.#turnFrom(connection, reason);
    });
    this.#connections.add(connection);
    this.#route += 1;
    return connection;
  }

  /** Requests under way on it may still be answered. Without trouble no hold is in jeopardy. */
  #turnFrom(connection: GrpcConnection, trouble?: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.leave();
    const { endpoints } = this.options;
    const url = endpoints[this.#endpoint];
    this.#endpoint = (this.#endpoint + 1) % endpoints.length;
    if (trouble && !this.#closed) this.health.report('down', `${url}: ${trouble.message}`);
  }

  async #metadata(): Promise<Metadata> {
    if (!this.options.credentials) return NEEDS_A_LEADER;
    this.#token ??= this.#authenticate(this.options.credentials);
    const token = this.#token;
    try {
      return { ...NEEDS_A_LEADER, token: await token };
    } catch (error) {
      if (this.#token === token) this.#token = undefined;
      throw error;
    }
  }

  async #authenticate(credentials: Given<Credentials>): Promise<string> {
    const longestMs = this.options.requestTimeoutMs;
    const current = await given('credentials', credentials, longestMs);
    if (!areCredentials(current)) throw new Error('the credentials are not { username, password }, both of them text');
    const request = encode([1, current.username], [2, current.password]);
    const reply = await this.#ask(METHOD.authenticate, request, NEEDS_A_LEADER, longestMs);
    this.#route += 1;
    return reply.text(2);
  }
}

/** Another member should be asked. One that is merely slow says that the request timed out. */
function isCutOff({ code, message }: EtcdError): boolean {
  return code === 'UNAVAILABLE' && !message.endsWith('request timed out');
}
