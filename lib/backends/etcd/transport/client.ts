import { randomInt } from 'node:crypto';
import type { ClientHttp2Stream } from 'node:http2';
import {
  areCredentials,
  type Credentials,
  type ValueOrGetter,
  getPresentValue,
  isLockError,
  pause,
  ReportedHealth,
  Semaphore,
  systemClock,
} from '../../../core/index.js';
import { toConnectionError, EtcdError, isMemberRefusal, isTokenExpired } from '../error.js';
import type { ResolvedEtcdOptions } from '../options.js';
import { ClusterGuard } from './cluster-guard.js';
import { GrpcConnection } from './grpc-connection.js';
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
import { encode, type Message } from './protobuf.js';

/** Metadata by which a member without a leader refuses a request at once, instead of waiting for a leader. */
const REQUIRE_LEADER = { hasleader: 'true' };

/** Maximum number of concurrent requests. It allows full throughput. A larger one would only delay all answers. */
const MAX_CONCURRENT_REQUESTS = 64;
/** Factor on the request time-out while the server answers other requests. An early retry would only add load. */
const BUSY_TIMEOUT_FACTOR = 4;
/** Maximum number of tries of a request that the server has not processed. */
const MAX_TRIES = 3;
/** Number of answers of each endpoint that must agree: several members may share an address. */
const COMPARISONS_PER_ENDPOINT = 5;

/**
 * Client that uses one member at a time, and moves to the next when a connection fails or its member has no leader.
 * Repeats no request that may have been carried out.
 */
export class EtcdClient {
  readonly health = new ReportedHealth();
  readonly #requestLimit = new Semaphore(MAX_CONCURRENT_REQUESTS);
  #endpointIndex: number;
  #connection: GrpcConnection | undefined;
  readonly #connections = new Set<GrpcConnection>();
  #clusterGuard = new ClusterGuard();
  #isComparingAgain = false;
  #accessVersion = 0;
  #token: Promise<string> | undefined;
  #isClosed = false;

  constructor(private readonly options: ResolvedEtcdOptions) {
    this.#endpointIndex = randomInt(options.endpoints.length);
  }

  async transact(request: Transaction): Promise<TransactionOutcome> {
    const maxMs = this.options.requestTimeoutMs * BUSY_TIMEOUT_FACTOR;
    return parseOutcome(await this.#requestLimit.run(() => this.#call(METHOD.txn, encodeTransaction(request), maxMs)));
  }

  /** Returns the entries of each range as of one revision. */
  async list(...ranges: readonly KeyRange[]): Promise<readonly (readonly KeyValue[])[]> {
    const request = encodeTransaction({ steps: ranges.map((list) => ({ list })) });
    return parseOutcome(await this.#requestLimit.run(() => this.call(METHOD.txn, request))).readKeyValuesByStep();
  }

  /** Reads keys. `#requestLimit` does not apply, because the heartbeat of a session depends on this call. */
  async read(names: readonly string[]): Promise<TransactionOutcome> {
    return parseOutcome(await this.call(METHOD.txn, encodeTransaction({ steps: names.map((get) => ({ get })) })));
  }

  call(method: string, request: Buffer): Promise<Message> {
    return this.#call(method, request, this.options.requestTimeoutMs);
  }

  /**
   * Asks each endpoint for its cluster. An endpoint that does not answer is compared later, when it is used.
   * @throws LockConfigurationError when the endpoints are of different clusters
   */
  async compareClusters(): Promise<void> {
    const headers = await this.#getMetadata();
    const urls = new Set(this.options.endpoints);
    if (urls.size > 1)
      await Promise.allSettled([...urls].map((url) => this.#checkCluster(url, headers, this.#clusterGuard)));
    this.#clusterGuard.assertOneCluster();
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
    for (const connection of this.#connections) connection.end(new Error('the backend is closed'));
  }

  /**
   * Asks all endpoints again after members of different clusters have answered. Allows requests again once each
   * endpoint answers several times as a member of one cluster, as after a cluster was rebuilt. Never rejects.
   */
  async #compareClustersAgain(): Promise<void> {
    this.#isComparingAgain = true;
    const guard = new ClusterGuard();
    const urls = this.options.endpoints.flatMap((url) => Array.from({ length: COMPARISONS_PER_ENDPOINT }, () => url));
    const comparisons = urls.map((url) => this.#checkCluster(url, REQUIRE_LEADER, guard));
    const areOneCluster = await Promise.all(comparisons).then(
      () => true,
      () => false,
    );
    if (areOneCluster) this.#clusterGuard = guard;
    await pause(systemClock, this.options.requestTimeoutMs, { background: true });
    this.#isComparingAgain = false;
  }

  async #checkCluster(url: string, headers: Metadata, guard: ClusterGuard): Promise<void> {
    const { tls, requestTimeoutMs } = this.options;
    const connection = new GrpcConnection(url, tls(), requestTimeoutMs, () => undefined);
    try {
      const status = await connection.call(METHOD.status, Buffer.alloc(0), headers, requestTimeoutMs);
      guard.checkReply(status, url);
    } finally {
      connection.end(undefined);
    }
  }

  async #call(method: string, request: Buffer, maxMs: number): Promise<Message> {
    const headers = await this.#getMetadata();
    const token = this.#token;
    try {
      return await this.#callMember(method, request, headers, maxMs);
    } catch (error) {
      if (!token || !isTokenExpired(error)) throw error;
      if (this.#token === token) this.#token = undefined;
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
        this.#clusterGuard.checkReply(reply, connection.url);
        if (this.#connection === connection) this.health.report('up');
        return reply;
      } catch (error) {
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
      this.#clusterGuard.assertOneCluster();
      return (this.#connection ??= this.#openConnection());
    } catch (error) {
      // The endpoints are of different clusters, or the option `tls` has failed.
      if (isLockError(error) && !this.#isComparingAgain) void this.#compareClustersAgain();
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
    const currentCredentials = await getPresentValue('credentials', credentials, maxMs);
    if (!areCredentials(currentCredentials))
      throw new Error('the credentials are not { username, password }, both of them text');
    const request = encode([1, currentCredentials.username], [2, currentCredentials.password]);
    const reply = await this.#callMember(METHOD.authenticate, request, REQUIRE_LEADER, maxMs);
    this.#accessVersion += 1;
    return reply.text(2);
  }
}

/** Returns whether a member refused for want of a leader. A member that is merely slow says `request timed out`. */
function isWithoutLeader({ code, message }: EtcdError): boolean {
  return code === 'UNAVAILABLE' && !message.endsWith('request timed out');
}
