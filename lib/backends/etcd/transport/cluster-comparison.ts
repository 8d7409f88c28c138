import { pause, type ReportedHealth, systemClock } from '../../../core/index.js';
import { type EtcdError, isFinalError, isMemberRefusal, isTokenExpired } from '../error.js';
import { EtcdLockNames } from '../lock-names.js';
import type { ResolvedEtcdOptions } from '../options.js';
import { REQUIRE_LEADER, requestToken } from './authentication.js';
import { ClusterGuard } from './cluster-guard.js';
import { GrpcConnection } from './grpc-connection.js';
import { METHOD } from './messages.js';
import { encode, type Message } from './protobuf.js';

/** Number of answers of each endpoint that must agree: several members may share an address. */
const COMPARISONS_PER_ENDPOINT = 5;

/** Compares the clusters behind the endpoints, and refuses requests while the endpoints are of different clusters. */
export class ClusterComparison {
  #guard = new ClusterGuard();
  #isComparingAgain = false;
  /** Endpoints that refused to be compared. The advice in `health` names them. */
  readonly #refusingUrls = new Set<string>();

  constructor(
    private readonly options: ResolvedEtcdOptions,
    private readonly health: ReportedHealth,
  ) {}

  /** @throws LockConfigurationError */
  assertOneCluster(): void {
    this.#guard.assertOneCluster();
  }

  /** @throws LockConfigurationError when this reply or an earlier one is of a second cluster */
  checkReply(reply: Message, url: string): void {
    this.#guard.checkReply(reply, url);
    if (this.#refusingUrls.size > 0) this.#updateRefusalAdvice(url, undefined);
  }

  /**
   * Asks each endpoint for its cluster. An endpoint that does not answer is compared later, when it is used.
   * @throws LockConfigurationError when the endpoints are of different clusters
   */
  async compare(): Promise<void> {
    const urls = new Set(this.options.endpoints);
    if (urls.size > 1) await this.#compareEach([...urls], this.#guard);
    this.#guard.assertOneCluster();
  }

  /**
   * Asks all endpoints again after members of different clusters have answered. Allows requests again once each
   * endpoint answers several times as a member of one cluster, as after a cluster was rebuilt. Never rejects.
   */
  async compareAgain(): Promise<void> {
    if (this.#isComparingAgain) return;
    this.#isComparingAgain = true;
    const guard = new ClusterGuard();
    const urls = [...new Set(this.options.endpoints)];
    let areOneCluster = true;
    // Each round authenticates anew, which costs the server much. The first failure therefore ends the rounds.
    for (let round = 0; areOneCluster && round < COMPARISONS_PER_ENDPOINT; round += 1)
      areOneCluster = await this.#compareEach(urls, guard);
    if (areOneCluster) this.#guard = guard;
    await pause(systemClock, this.options.requestTimeoutMs, { background: true });
    this.#isComparingAgain = false;
  }

  /** Resolves to whether all endpoints have answered, and as members of one cluster. */
  async #compareEach(urls: readonly string[], guard: ClusterGuard): Promise<boolean> {
    const results = await Promise.all(
      urls.map(async (url) => {
        try {
          guard.checkReply(await this.#askForCluster(url), url);
          this.#updateRefusalAdvice(url, undefined);
          return true;
        } catch (error) {
          // A learner serves no login. It is compared later, when it is used.
          if (isMemberRefusal(error)) return true;
          if (isFinalError(error) || isTokenExpired(error)) this.#updateRefusalAdvice(url, error);
          return false;
        }
      }),
    );
    return results.every((isSameCluster) => isSameCluster);
  }

  /**
   * Reads a key that the least privilege allows, because the header of every reply names the cluster. The connection
   * has a token of its own: another cluster does not know the token of the other connections.
   */
  async #askForCluster(url: string): Promise<Message> {
    const { credentials, prefix, tls, requestTimeoutMs: maxMs } = this.options;
    const connection = new GrpcConnection(url, tls(), maxMs, () => undefined);
    const authenticate = (request: Buffer): Promise<Message> =>
      connection.call(METHOD.authenticate, request, REQUIRE_LEADER, maxMs);
    try {
      const tokenMetadata = credentials ? { token: await requestToken(credentials, maxMs, authenticate) } : {};
      // Field 7 allows an answer without a quorum. Without users, a learner gives this answer, too.
      const request = encode([1, new EtcdLockNames(prefix).sessionKeyName(0n)], [7, true]);
      return await connection.call(METHOD.range, request, { ...REQUIRE_LEADER, ...tokenMetadata }, maxMs);
    } finally {
      connection.end(undefined);
    }
  }

  /** Sets the advice about an endpoint that refused to be compared. Without `error`, removes the advice. */
  #updateRefusalAdvice(url: string, error: EtcdError | undefined): void {
    if (error) this.#refusingUrls.add(url);
    else if (!this.#refusingUrls.delete(url)) return;
    const advice = error && `${url} refuses to say of which cluster it is: ${error.message}`;
    this.health.setAdvice(`cluster of ${url}`, advice);
  }
}
