import { LockConfigurationError } from '../../core/index.js';
import { authenticate } from './authentication.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import { MemcachedError } from './error.js';
import { isOtherServer, readServerId, readServerIdentity, type ServerIdentity } from './server-identity.js';
import { MemcachedConnection } from './transport/connection.js';
import { VerifiedConnection, type VerifiedConnectionOptions } from './verified-connection.js';

/**
 * Number of further connections that test a name when a process starts. If the name leads to two servers, each of these
 * connections reaches the other server with a probability of one half.
 */
const FIRST_COMPARISONS = 3;
/** Number of further connections that must all reach the new server, after the server of a name has changed. */
const COMPARISONS_AFTER_CHANGE = 20;

/**
 * The server behind a name. A name that leads to several servers, such as a Kubernetes service with two pods, would
 * give a key to several holders: https://github.com/bitnami/charts/issues/5201.
 */
export class NamedServer {
  #knownServer: { readonly identity: ServerIdentity; readonly transport: MemcachedConnection } | undefined;
  /** Error that says that the name leads to several servers; `undefined` after the next connection that succeeds. */
  #severalServersError: Error | undefined;

  constructor(private readonly options: VerifiedConnectionOptions) {}

  /**
   * Returns whether `error` says that this name leads to several servers. That error concerns only the keys of this
   * name.
   */
  isSeveralServersError(error: unknown): boolean {
    return error !== undefined && error === this.#severalServersError;
  }

  /**
   * @throws as `VerifiedConnection.open`. When the name leads to several servers, throws LockConfigurationError for the
   * first connection. Throws MemcachedError for later ones, because the old server may be about to end.
   */
  async connect(): Promise<VerifiedConnection> {
    const connection = await VerifiedConnection.open(this.options);
    try {
      const identity = await readServerIdentity(connection, this.options.prefix);
      await this.#compareConnections(connection, this.#countComparisons(identity));
      this.#severalServersError = undefined;
      this.#knownServer = { identity, transport: connection.transport };
    } catch (error) {
      connection.transport.end(new MemcachedError('not-sent', 'the connection was of no use'));
      throw error;
    }
    connection.onClockRead = () => this.#compareInBackground(connection);
    return connection;
  }

  #countComparisons(identity: ServerIdentity): number {
    const knownServer = this.#knownServer;
    const hasServerChanged =
      knownServer && isOtherServer(knownServer.identity, knownServer.transport.lastReceivedAt, identity);
    if (this.#severalServersError || hasServerChanged) return COMPARISONS_AFTER_CHANGE;
    return knownServer ? 0 : FIRST_COMPARISONS;
  }

  #compareInBackground(connection: VerifiedConnection): void {
    this.#compareConnections(connection, 1).catch((error: Error) =>
      connection.transport.end(new MemcachedError('unknown', error.message)),
    );
  }

  /**
   * Opens `count` further connections, and throws if one of them reaches another server. A connection that fails is
   * ignored, except after a change of the server: then all connections must succeed.
   */
  async #compareConnections(connection: VerifiedConnection, count: number): Promise<void> {
    const comparisons = Array.from({ length: count }, () => this.#isSameServerReached(connection));
    const outcomes = await Promise.allSettled(comparisons);
    if (outcomes.some((outcome) => outcome.status === 'fulfilled' && !outcome.value))
      throw this.#recordSeveralServersError();
    const failure = outcomes.find((outcome) => outcome.status === 'rejected');
    if (failure && count === COMPARISONS_AFTER_CHANGE) throw failure.reason;
  }

  async #isSameServerReached({ dialect }: VerifiedConnection): Promise<boolean> {
    const { prefix, credentials, connectTimeoutMs } = this.options;
    const transport = await MemcachedConnection.open(this.options);
    try {
      await authenticate(transport, credentials, connectTimeoutMs);
      const newDialect = new ClassicDialect(transport);
      const haveSameId = async (): Promise<boolean> => {
        const [id, newId] = await Promise.all([readServerId(dialect, prefix), readServerId(newDialect, prefix)]);
        return id === newId;
      };
      // Compares again if the ids differ, because the id may be deleted between the two readings of a comparison.
      return (await haveSameId()) || (await haveSameId());
    } finally {
      transport.end(new MemcachedError('not-sent', 'the servers are compared'));
    }
  }

  #recordSeveralServersError(): Error {
    const { host, port } = this.options;
    const message =
      `servers must name each server by a name of its own; ${host}:${port} leads to several servers, ` +
      'so that each of them would give the same key to a holder';
    this.#severalServersError = this.#knownServer
      ? new MemcachedError('not-sent', message)
      : new LockConfigurationError(message, 'servers');
    return this.#severalServersError;
  }
}
