/** The part of the options of a node-redis client that the backend reads. */
export interface NodeRedisOptions {
  readonly RESP?: number | undefined;
  readonly disableOfflineQueue?: boolean | undefined;
  readonly maintNotifications?: string | undefined;
  readonly socket?: object | undefined;
}

/** The part of a client of node-redis (`createClient`) that the backend uses. Clients of version 5 and 6 fit. */
export interface NodeRedisClient {
  /** Whether the client is connected, or tries to be. */
  readonly isOpen: boolean;
  /** Whether the client is connected. */
  readonly isReady: boolean;
  /** Number of connections that the client has had. */
  readonly socketEpoch?: number;
  readonly options?: NodeRedisOptions | undefined;
  sendCommand(args: readonly string[], options?: object): Promise<unknown>;
  subscribe(channel: string, listener: (message: unknown, channel: string) => void): Promise<unknown>;
  sSubscribe(channel: string, listener: (message: unknown, channel: string) => void): Promise<unknown>;
  unsubscribe(channel: string): Promise<unknown>;
  sUnsubscribe(channel: string): Promise<unknown>;
  duplicate(overrides?: object): NodeRedisClient;
  connect(): Promise<unknown>;
  destroy(): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The part of a cluster of node-redis (`createCluster`) that the backend uses. */
export interface NodeRedisCluster {
  readonly isOpen: boolean;
  readonly masters: readonly NodeRedisClusterNode[];
  readonly replicas: readonly NodeRedisClusterNode[];
  nodeClient(node: NodeRedisClusterNode): Promise<NodeRedisClient>;
  connect(): Promise<unknown>;
  sendCommand(key: string | undefined, isReadonly: boolean | undefined, args: string[]): Promise<unknown>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
}

export interface NodeRedisClusterNode {
  /** `host:port`, as the cluster knows the node. */
  readonly address: string;
  readonly host: string;
  readonly port: number;
  readonly id: string;
  readonly readonly: boolean;
  readonly client?: NodeRedisClient;
}

/** The part of a Sentinel client of node-redis (`createSentinel`) that the backend uses. */
export interface NodeRedisSentinel {
  readonly isOpen: boolean;
  getMasterNode(): unknown;
  getSentinelNode(): unknown;
  connect(): Promise<unknown>;
  /** Waits for a connection to the master, and calls `use` with it. */
  _execute<T>(isReadonly: boolean | undefined, use: (client: NodeRedisClient) => Promise<T>): Promise<T>;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

const SENDING_METHODS = ['sendCommand', 'subscribe', 'sSubscribe', 'unsubscribe', 'sUnsubscribe'];
const CLIENT_METHODS = [...SENDING_METHODS, 'duplicate', 'connect', 'destroy', 'on', 'off'];

export function isNodeRedisClient(client: unknown): client is NodeRedisClient {
  return typeof Reflect.get(Object(client), 'isReady') === 'boolean' && hasMethods(client, CLIENT_METHODS);
}

export function isNodeRedisCluster(client: unknown): client is NodeRedisCluster {
  return hasMethods(client, ['nodeClient', 'connect', 'sendCommand', 'on']);
}

export function isNodeRedisSentinel(client: unknown): client is NodeRedisSentinel {
  return hasMethods(client, ['getMasterNode', 'getSentinelNode', '_execute', 'connect', 'on', 'off']);
}

export function isNodeRedisPool(client: unknown): boolean {
  return typeof Reflect.get(Object(client), 'totalClients') === 'number' && hasMethods(client, ['execute']);
}

function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return methods.every((name) => typeof Reflect.get(Object(value), name) === 'function');
}
