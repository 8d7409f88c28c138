import { randomInt } from 'node:crypto';
import type { ClientHttp2Stream } from 'node:http2';
import { type Credentials, type ValueOrGetter, isLockError, ReportedHealth } from '../../../core/index.js';
import { toConnectionError, EtcdError, isMemberRefusal, isTokenExpired } from '../error.js';
import type { ResolvedEtcdOptions } from '../options.js';
import { REQUIRE_LEADER, requestToken } from './authentication.js';
import { ClusterComparison } from './cluster-comparison.js';
import { GrpcConnection, UnansweredConnectionError } from './grpc-connection.js';
import { type Metadata, NotGrpcError, NotProcessedError, type StreamListener } from './grpc-stream.js';
import {
  type KeyValue,
  METHOD,
  type TransactionOutcome,
  type KeyRange,
  parseOutcome,
  encodeTransaction,
  type Transaction,
} from './messages.js';
import type { Message } from './protobuf.js';
import { type OnSend, RequestLine } from './request-line.js';

/** Factor on the request time-out while the server answers other requests. An early retry would only add load. */
const BUSY_TIMEOUT_FACTOR = 4;
/** Maximum number of tries of a request that the server has not processed. */
const MAX_TRIES = 3;

/**
 * Client that uses one member at a time, and moves to the next when a connection fails or its member has no leader.
 * Repeats no request that may have been carried out.
 */
export class EtcdClient {
  readonly health = new ReportedHealth();
  readonly #requestLine: RequestLine;
  readonly #clusters: ClusterComparison;
  #endpointIndex: number;
  #connection: GrpcConnection | undefined;
  readonly #connections = new Set<GrpcConnection>();
  #accessVersion = 0;
  #token: Promise<string> | undefined;
  #isClosed = false;

  constructor(private readonly options: ResolvedEtcdOptions) {
    this.#endpointIndex = randomInt(options.endpoints.length);
    this.#requestLine = new RequestLine(options.requestTimeoutMs);
    this.#clusters = new ClusterComparison(options, this.health);
  }

  /** @throws NotSentError if the request had to wait for too long, or if `onSend` returned false */
  async transact(request: Transaction, onSend?: OnSend): Promise<TransactionOutcome> {
    const maxMs = this.options.requestTimeoutMs * BUSY_TIMEOUT_FACTOR;
    const send = (): Promise<Message> => this.#call(METHOD.txn, encodeTransaction(request), maxMs);
    return parseOutcome(await this.#requestLine.run(send, onSend));
  }

  /** Returns the entries of each range as of one revision. */
  async list(...ranges: readonly KeyRange[]): Promise<readonly (readonly KeyValue[])[]> {
    const request = encodeTransaction({ steps: ranges.map((list) => ({ list })) });
    return parseOutcome(await this.#requestLine.run(() => this.call(METHOD.txn, request))).readKeyValuesByStep();
  }

  /** Reads keys. `#requestLine` does not apply, because the heartbeat of a session depends on this call. */
  async read(names: readonly string[]): Promise<TransactionOutcome> {
    return parseOutcome(await this.call(METHOD.txn, encodeTransaction({ steps: names.map((get) => ({ get })) })));
  }

  call(method: string, request: Buffer): Promise<Message> {
    return this.#call(method, request, this.options.requestTimeoutMs);
  }

  /** @throws LockConfigurationError when the endpoints are of different clusters */
  compareClusters(): Promise<void> {
    return this.#clusters.compare();
  }

  /** Number that changes with each connection and each token. A stream keeps the number with which it was opened. */
  get accessVersion(): number {
    return this.#accessVersion;
  }

  async openStream(method: string, listener: StreamListener): Promise<ClientHttp2Stream> {
    const headers = await this.#getMetadata();
    return this.#getOpenConnection().openStream(method, headers, listener);
  }

  close(): void {
    this.#isClosed = true;
    this.#requestLine.close();
    for (const connection of this.#connections) connection.end(new Error('the backend is closed'));
  }

  async #call(method: string, request: Buffer, maxMs: number): Promise<Message> {
    const headers = await this.#getMetadata();
    const token = this.#token;
    try {
      return await this.#callMember(method, request, headers, maxMs);
    } catch (error) {
      const isExpired = isTokenExpired(error);
      // etcd does not answer a request with a token of a cluster that was rebuilt since.
      const mayBeOfFormerCluster = error instanceof UnansweredConnectionError;
      if ((isExpired || mayBeOfFormerCluster) && this.#token === token) this.#token = undefined;
      if (!token || !isExpired) throw error;
      // A member that refuses even a new token has other users than the rest of its cluster.
      const shouldTryNext = (failure: unknown): failure is EtcdError =>
        isMemberRefusal(failure) || isTokenExpired(failure);
      return this.#callMember(method, request, await this.#getMetadata(), maxMs, shouldTryNext);
    }
  }

  /** Sends a request. Tries the next member if one refuses because of its own state, until all have refused. */
  async #callMember(
    method: string,
    request: Buffer,
    headers: Metadata,
    maxMs: number,
    shouldTryNext: (error: unknown) => error is EtcdError = isMemberRefusal,
  ): Promise<Message> {
    const refusingUrls = new Set<string>();
    for (let tries = 1; ; tries += 1) {
      const connection = this.#getOpenConnection();
      try {
        const reply = await connection.call(method, request, headers, maxMs);
        this.#requestLine.noteAnswer();
        this.#clusters.checkReply(reply, connection.url);
        if (this.#connection === connection) this.health.report('up');
        return reply;
      } catch (error) {
        if (error instanceof EtcdError) this.#requestLine.noteAnswer();
        if (error instanceof EtcdError && isWithoutLeader(error)) connection.end(error);
        if (error instanceof NotGrpcError || isLockError(error)) this.#leaveMember(connection, error);
        if (shouldTryNext(error) && refusingUrls.add(connection.url).size < new Set(this.options.endpoints).size) {
          this.#leaveMember(connection, error);
          continue;
        }
        if (!(error instanceof NotProcessedError) || tries === MAX_TRIES) throw error;
      }
    }
  }

  #getOpenConnection(): GrpcConnection {
    if (this.#isClosed) throw new Error('the backend is closed');
    if (this.#connection?.isClosing === true) this.#leaveMember(this.#connection);
    try {
      this.#clusters.assertOneCluster();
      return (this.#connection ??= this.#openConnection());
    } catch (error) {
      // The endpoints are of different clusters, or the option `tls` has failed.
      if (isLockError(error)) void this.#clusters.compareAgain();
      this.health.report('down', toConnectionError(error).message);
      throw error;
    }
  }

  #openConnection(): GrpcConnection {
    const { endpoints, tls, requestTimeoutMs } = this.options;
    const connection = new GrpcConnection(endpoints[this.#endpointIndex] ?? '', tls(), requestTimeoutMs, (reason) => {
      this.#connections.delete(connection);
      this.#leaveMember(connection, reason);
    });
    this.#connections.add(connection);
    this.#accessVersion += 1;
    return connection;
  }

  /**
   * Turns to the next member for later requests, and lets requests under way finish. Reports `down` only if there is an
   * `error`: a close that the server announced endangers no lease.
   */
  #leaveMember(connection: GrpcConnection, error?: Error): void {
    if (this.#connection !== connection) return;
    this.#connection = undefined;
    connection.closeGracefully();
    const { endpoints } = this.options;
    const url = endpoints[this.#endpointIndex];
    this.#endpointIndex = (this.#endpointIndex + 1) % endpoints.length;
    if (error && !this.#isClosed) this.health.report('down', `${url}: ${error.message}`);
  }

  async #getMetadata(): Promise<Metadata> {
    if (!this.options.credentials) return REQUIRE_LEADER;
    this.#token ??= this.#authenticate(this.options.credentials);
    const token = this.#token;
    try {
      return { ...REQUIRE_LEADER, token: await token };
    } catch (error) {
      if (this.#token === token) this.#token = undefined;
      throw error;
    }
  }

  async #authenticate(credentials: ValueOrGetter<Credentials>): Promise<string> {
    const maxMs = this.options.requestTimeoutMs;
    const authenticate = (request: Buffer): Promise<Message> =>
      this.#callMember(METHOD.authenticate, request, REQUIRE_LEADER, maxMs);
    const token = await requestToken(credentials, maxMs, authenticate);
    this.#accessVersion += 1;
    return token;
  }
}

/** Returns whether a member refused for want of a leader. A member that is merely slow says `request timed out`. */
function isWithoutLeader({ code, message }: EtcdError): boolean {
  return code === 'UNAVAILABLE' && !message.endsWith('request timed out');
}
