import type { Socket } from 'node:net';
import { importClient, LockConfigurationError } from '../../../core/index.js';

export interface ZnodeStat {
  /** Number of the transaction that created the znode. */
  readonly czxid: Buffer;
  readonly ctime: Buffer;
  /** Session whose end deletes the znode; zeros if none. */
  readonly ephemeralOwner: Buffer;
}

export interface Payload {
  readonly data?: Buffer;
  readonly stat: ZnodeStat;
  readonly children?: readonly string[];
}

export interface WatchEvent {
  readonly type: number;
  readonly path: string;
}

/** Serialization of ZooKeeper's protocol, called Jute, as the client library contains it. */
export interface JuteLibrary {
  readonly protocol: Readonly<Record<string, new (...fields: readonly unknown[]) => object>>;
  readonly data: Readonly<Record<string, new (...fields: readonly unknown[]) => object>>;
  readonly Request: new (header: object, payload: object | null) => JuteRequest;
}

export interface JuteRequest {
  toBuffer(): Buffer;
}

type Callback = (error: { readonly code: number } | null, answer: { readonly payload: Payload }) => void;

export interface ConnectionManager {
  readonly socket: Socket;
  readonly connectTimeoutHandler: NodeJS.Timeout | null;
  /** Number of the next request. */
  readonly xid: number;
  readonly watcherManager: { emit: (event: WatchEvent) => void };
  findNextServer: (callback: (server: { host: string; port: number }) => void) => void;
  connect: () => void;
  onSocketData: (chunk: Buffer) => void;
  onSocketError: (error: Error) => void;
  queue(request: JuteRequest, callback: Callback): void;
  on(event: 'state', listener: (state: number) => void): void;
}

export interface ClientLibrary {
  createClient(
    servers: string,
    options: { sessionTimeout: number; retries: 0; sessionId?: Buffer; sessionPassword?: Buffer },
  ): Client;
}

export interface Client {
  readonly connectionManager: ConnectionManager;
  connect(): void;
  addAuthInfo(scheme: string, credentials: Buffer): void;
  getSessionId(): Buffer;
  getSessionPassword(): Buffer;
  getSessionTimeout(): number;
}

/** Kinds of znodes: https://zookeeper.apache.org, `CreateMode`. */
export const PERSISTENT = 0;
export const EPHEMERAL = 1;
export const EPHEMERAL_SEQUENTIAL = 3;
export const CONTAINER = 4;

/**
 * Operation of the protocol. The server receives `serverType`, whereas the library parses the answer as an answer to
 * `clientType`.
 */
interface Operation {
  readonly serverType: number;
  readonly clientType: number;
  /** Name of the library's class for the fields of a request; `null` for a request without fields. */
  readonly record: string | null;
  /** Whether a follower forwards the request to its leader, instead of answering by itself. */
  readonly needsLeader: boolean;
}

/**
 * Operations by name. The library lacks `create2` (here `create`), `createContainer` and `sync`. These three borrow the
 * `clientType` of another operation. An answer to `create2` has the form of an answer to `getData`. The content of an
 * answer to `sync` is not needed.
 */
const OPERATIONS = {
  create: { serverType: 15, clientType: 4, record: 'CreateRequest', needsLeader: true },
  createPersistent: { serverType: 1, clientType: 1, record: 'CreateRequest', needsLeader: true },
  createContainer: { serverType: 19, clientType: 1, record: 'CreateRequest', needsLeader: true },
  delete: { serverType: 2, clientType: 2, record: 'DeleteRequest', needsLeader: true },
  write: { serverType: 5, clientType: 5, record: 'SetDataRequest', needsLeader: true },
  read: { serverType: 4, clientType: 4, record: 'GetDataRequest', needsLeader: false },
  children: { serverType: 12, clientType: 12, record: 'GetChildren2Request', needsLeader: false },
  sync: { serverType: 9, clientType: 2, record: 'GetACLRequest', needsLeader: true },
  closeSession: { serverType: -11, clientType: -11, record: null, needsLeader: true },
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

export function isAnsweredByLeader(name: OperationName): boolean {
  return OPERATIONS[name].needsLeader;
}

export interface AclEntry {
  readonly scheme: string;
  readonly id: string;
  /** Bits of the permissions: read 1, write 2, create 4, delete 8, admin 16. */
  readonly permissions: number;
}

export interface RequestFields {
  readonly path?: string;
  readonly data?: Buffer;
  readonly acl?: readonly AclEntry[];
  readonly flags?: number;
  /** Version for `delete` and `write`; -1 for any. */
  readonly version?: number;
  readonly watch?: boolean;
}

export class ZooKeeperLibrary {
  private constructor(
    readonly client: ClientLibrary,
    private readonly jute: JuteLibrary,
  ) {}

  /** @throws LockConfigurationError when the library is not installed, or cannot be loaded */
  static async load(): Promise<ZooKeeperLibrary> {
    const load = async (): Promise<ZooKeeperLibrary> => {
      const { default: client } = await import('node-zookeeper-client');
      const { default: jute } = await import('node-zookeeper-client/lib/jute/index.js');
      return new ZooKeeperLibrary(client, jute);
    };
    const name = 'node-zookeeper-client';
    return importClient(load, { neededBy: 'zookeeper()', name, install: `${name}@1.1.3`, option: 'client' });
  }

  createRequest(name: OperationName, { acl, ...fields }: RequestFields): JuteRequest {
    const { serverType, clientType, record }: Operation = OPERATIONS[name];
    const header = Object.assign(new (this.#getRecordClass('protocol', 'RequestHeader'))(), { type: clientType });
    const payload = record === null ? null : Object.assign(new (this.#getRecordClass('protocol', record))(), fields);
    if (payload && acl) Object.assign(payload, { acl: this.#encodeAcl(acl) });
    const request = new this.jute.Request(header, payload);
    const encode = request.toBuffer.bind(request);
    request.toBuffer = () => {
      header.type = serverType;
      const bytes = encode();
      header.type = clientType;
      return bytes;
    };
    return request;
  }

  #encodeAcl(entries: readonly AclEntry[]): readonly object[] {
    const [Acl, Id] = [this.#getRecordClass('data', 'ACL'), this.#getRecordClass('data', 'Id')];
    return entries.map(({ scheme, id, permissions }) => new Acl(permissions, new Id(scheme, id)));
  }

  #getRecordClass(group: 'data' | 'protocol', name: string): new (...fields: readonly unknown[]) => object {
    const RecordClass = this.jute[group][name];
    if (!RecordClass)
      throw new LockConfigurationError(`this node-zookeeper-client knows no ${name}: use 1.1.3`, 'client');
    return RecordClass;
  }
}
