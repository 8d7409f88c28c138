import { parseConnectString } from '../../lib/backends/zookeeper/connect-string.js';
import {
  listChildren,
  createZnode,
  createWithParents,
  deleteZnode,
  type ZnodeState,
  getParentPath,
  readZnode,
} from '../../lib/backends/zookeeper/znodes.js';
import { EnsembleClient } from '../../lib/backends/zookeeper/ensemble-client.js';
import type { ZooKeeperConnection } from '../../lib/backends/zookeeper/transport/connection.js';
import { PERSISTENT } from '../../lib/backends/zookeeper/transport/wire.js';
import { eventually } from '../support/eventually.js';

const SESSION_MS = 10_000;
const EVERYBODY = [{ scheme: 'world', id: 'anyone', permissions: 31 }];

/** The hand of an operator, in a session of its own. */
export class ZookeeperOperator {
  readonly #ensemble: EnsembleClient;

  constructor(connectString: string, auth?: string) {
    const { servers } = parseConnectString(connectString);
    this.#ensemble = new EnsembleClient({
      servers,
      sessionTtlMs: SESSION_MS,
      requestTimeoutMs: SESSION_MS,
      patienceMs: SESSION_MS,
      auth: auth === undefined ? undefined : Buffer.from(auth),
    });
  }

  /** Up to date, whichever server answers. Nothing where there is no such node. */
  async children(path: string): Promise<readonly string[]> {
    return listChildren(await this.#upToDate(), path);
  }

  async read(path: string): Promise<ZnodeState | null> {
    return readZnode(await this.#upToDate(), path);
  }

  async create(path: string, data: string, acl = EVERYBODY): Promise<void> {
    const connection = await this.#upToDate();
    if (getParentPath(path) !== '/') await createWithParents(connection, getParentPath(path), EVERYBODY, PERSISTENT);
    await createZnode(connection, path, { data: Buffer.from(data), acl, flags: PERSISTENT });
  }

  async delete(path: string): Promise<void> {
    await deleteZnode(await this.#upToDate(), path);
  }

  close(): Promise<void> {
    return this.#ensemble.close();
  }

  async #upToDate(): Promise<ZooKeeperConnection> {
    const { connection } = await eventually(() => this.#ensemble.getConnectedSession(), { withinMs: SESSION_MS });
    await connection.send('sync', { path: '/' });
    return connection;
  }
}
