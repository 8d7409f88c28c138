import type { Socket } from 'node:net';
import { importClient, LockConfigurationError } from '../../../core/index.js';

export interface NodeStat {
  /** The number of the transaction that created the node. */
  readonly czxid: Buffer;
  readonly ctime: Buffer;
  /** The session that the node ends with; zeros if none. */
  readonly ephemeralOwner: Buffer;
}

/** The content of an answer, which has some of these fields. */
export interface Payload {
  readonly data?: Buffer;
  readonly stat: NodeStat;
  readonly children?: readonly string[];
}

export interface WatchEvent {
  readonly type: number;
  readonly path: string;
}

/** The codec of the client. */
export interface JuteLibrary {
  readonly protocol: Readonly<Record<string, new (...fields: readonly unknown[]) => object>>;
  readonly data: Readonly<Record<string, new (...fields: readonly unknown[]) => object>>;
  readonly Request: new (header: object, payload: object | null) => JuteRequest;
}

export interface JuteRequest {
  toBuffer(): Buffer;
}

type Callback = (error: { readonly code: number } | null, answer: { readonly payload: Payload }) => void;

/** The inner part of the client, which has the socket. */
export interface ConnectionManager {
  readonly socket: Socket;
  readonly connectTimeoutHandler: NodeJS.Timeout | null;
  readonly pendingBuffer: Buffer | null;
  /** The number of the next request. */
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

/** Kinds of nodes: https://zookeeper.apache.org, `CreateMode`. */
export const PERSISTENT = 0;
export const EPHEMERAL = 1;
export const EPHEMERAL_SEQUENTIAL = 3;
export const CONTAINER = 4;

/** `wire` is the operation for the server; the client reads the answer as that of `known`. */
interface Operation {
  readonly wire: number;
  readonly known: number;
  readonly record: string | null;
  /** Whether a follower passes it on to its leader, instead of answering by itself. */
  readonly leader: boolean;
}

/**
 * The client knows no `create2`, `createContainer` and `sync`. On the wire the answer to the first, a path and a stat,
 * looks like the data and the stat of `getData`. The answer to `sync` is not needed, like that to `delete`.
 */
const OPERATIONS = {
  create: { wire: 15, known: 4, record: 'CreateRequest', leader: true },
  createPersistent: { wire: 1, known: 1, record: 'CreateRequest', leader: true },
  createContainer: { wire: 19, known: 1, record: 'CreateRequest', leader: true },
  delete: { wire: 2, known: 2, record: 'DeleteRequest', leader: true },
  write: { wire: 5, known: 5, record: 'SetDataRequest', leader: true },
  read: { wire: 4, known: 4, record: 'GetDataRequest', leader: false },
  children: { wire: 12, known: 12, record: 'GetChildren2Request', leader: false },
  sync: { wire: 9, known: 2, record: 'GetACLRequest', leader: true },
  closeSession: { wire: -11, known: -11, record: null, leader: true },
} satisfies Record<string, Operation>;

export type OperationName = keyof typeof OPERATIONS;

/** Whether the leader has a part in its answer. */
export function isOfLeader(name: OperationName): boolean {
  return OPERATIONS[name].leader;
}

export interface AclEntry {
  readonly scheme: string;
  readonly id: string;
  /** Bits: read 1, write 2, create 4, delete 8, admin 16. */
  readonly permissions: number;
}

export interface RequestFields {
  readonly path?: string;
  readonly data?: Buffer;
  readonly acl?: readonly AclEntry[];
  /** For `create`: one of the kinds of node above. */
  readonly flags?: number;
  /** For `delete` and `write`: -1 is any. */
  readonly version?: number;
  readonly watch?: boolean;
}

/** node-zookeeper-client, which makes connections, and its codec, which makes requests. */
export class ZooKeeperWire {
  private constructor(
    readonly client: ClientLibrary,
    private readonly jute: JuteLibrary,
  ) {}

  /** @throws LockConfigurationError when the client is not installed, or cannot be loaded */
  static async load(): Promise<ZooKeeperWire> {
    const load = async (): Promise<ZooKeeperWire> => {
      const { default: client } = await import('node-zookeeper-client');
      const { default: jute } = await import('node-zookeeper-client/lib/jute/index.js');
      return new ZooKeeperWire(client, jute);
    };
    const name = 'node-zookeeper-client';
    return importClient(load, { neededBy: 'zookeeper()', name, install: `${name}@1.1.3`, option: 'client' });
  }

  request(name: OperationName, { acl, ...fields }: RequestFields): JuteRequest {
    const { wire, known, record }: Operation = OPERATIONS[name];
    const header = Object.assign(new (this.#record('protocol', 'RequestHeader'))(), { type: known });
    const payload = record === null ? null : Object.assign(new (this.#record('protocol', record))(), fields);
    if (payload && acl) Object.assign(payload, { acl: this.#acl(acl) });
    const request = new this.jute.Request(header, payload);
    const encode = request.toBuffer.bind(request);
    request.toBuffer = () => {
      header.type = wire;
      const bytes = encode();
      header.type = known;
      return bytes;
    };
    return request;
  }

  #acl(entries: readonly AclEntry[]): readonly object[] {
    const [Acl, Id] = [this.#record('data', 'ACL'), this.#record('data', 'Id')];
    return entries.map(({ scheme, id, permissions }) => new Acl(permissions, new Id(scheme, id)));
  }

  #record(group: 'data' | 'protocol', name: string): new (...fields: readonly unknown[]) => object {
    const found = this.jute[group][name];
    if (!found) throw new LockConfigurationError(`this node-zookeeper-client knows no ${name}: use 1.1.3`, 'client');
    return found;
  }
}
