import { isLockError, LockConfigurationError } from '../../core/index.js';
import { authenticate } from './authentication.js';
import { ClassicDialect } from './classic/classic-dialect.js';
import { MemcachedError } from './error.js';
import { isOtherServer, readServerId, readServerIdentity, type ServerIdentity } from './server-identity.js';
import { MemcachedConnection } from './transport/connection.js';
import { VerifiedConnection, type VerifiedConnectionOptions } from './verified-connection.js';

/** Number of further connections of a process that starts. Each finds one of two servers with a chance of a half. */
const FIRST_COMPARISONS = 3;

/**
 * The server behind a name. A name that leads to several servers, such as a Kubernetes service with two pods, would
 * give a key to several holders: https://github.com/bitnami/charts/issues/5201.
 */
export class NamedServer {
  #former: { readonly identity: ServerIdentity; readonly transport: MemcachedConnection } | undefined;
  /** The reason why the name is of no use until the process restarts: the next connection may reach either server. */
  #nameError: LockConfigurationError | undefined;

  constructor(private readonly options: VerifiedConnectionOptions) {}

  /** @throws as `VerifiedConnection.open`; LockConfigurationError when the name leads to several servers */
  async connect(): Promise<VerifiedConnection> {
    if (this.#nameError) throw this.#nameError;
    const connection = await VerifiedConnection.open(this.options);
    try {
      const identity = await readServerIdentity(connection, this.options.prefix);
      if (this.#former && isOtherServer(this.#former.identity, this.#former.transport.heardAt, identity))
        throw this.#refuseName(
          'now leads to another server, which was up beside the former one. If that one is gone for good, restart this process',
        );
      if (!this.#former) await this.#compareConnections(connection, FIRST_COMPARISONS);
      this.#former = { identity, transport: connection.transport };
    } catch (error) {
      connection.transport.end(new MemcachedError('not-sent', 'the connection was of no use'));
      throw error;
    }
    connection.onClockRead = () => this.#compareInBackground(connection);
    return connection;
  }

  #compareInBackground(connection: VerifiedConnection): void {
    this.#compareConnections(connection, 1).catch((error: Error) =>
      connection.transport.end(new MemcachedError('unknown', error.message)),
    );
  }

  /** Proves nothing where a connection fails. The next reading of the clock compares again. */
  async #compareConnections(connection: VerifiedConnection, count: number): Promise<void> {
    try {
      for (let i = 0; i < count; i += 1) await this.#compareWithNewConnection(connection);
    } catch (error) {
      if (isLockError(error)) throw error;
    }
  }

  async #compareWithNewConnection({ dialect }: VerifiedConnection): Promise<void> {
    const { prefix, credentials, connectTimeoutMs } = this.options;
    const transport = await MemcachedConnection.open(this.options);
    try {
      await authenticate(transport, credentials, connectTimeoutMs);
      const newDialect = new ClassicDialect(transport);
      const haveSameId = async (): Promise<boolean> => {
        const [id, newId] = await Promise.all([readServerId(dialect, prefix), readServerId(newDialect, prefix)]);
        return id === newId;
      };
      // The id may be deleted between the two readings.
      if ((await haveSameId()) || (await haveSameId())) return;
      throw this.#refuseName('leads to several servers, so that each of them would give the same key to a holder');
    } finally {
      transport.end(new MemcachedError('not-sent', 'the servers are compared'));
    }
  }

  #refuseName(problem: string): LockConfigurationError {
    const { host, port } = this.options;
    this.#nameError ??= new LockConfigurationError(
      `servers must name each server by a name of its own; ${host}:${port} ${problem}`,
      'servers',
    );
    return this.#nameError;
  }
}
