import type { ReportedHealth } from '../../../core/index.js';

/**
 * The part of a client that the backend uses, with the method names of ioredis. Clients of ioredis 5 and 6 fit.
 * `clients/` has adapters for clients of node-redis.
 */
export interface RedisClient {
  /** Status by the names of ioredis, such as `wait`, `ready` and `end`. */
  readonly status: string;
  readonly isCluster: boolean;
  readonly stream?: RedisStream | undefined;
  /** Address of the server while the client is connected. @default the address of `stream` */
  readonly serverAddress?: { readonly host?: unknown; readonly port?: unknown } | undefined;
  readonly options?: {
    readonly keyPrefix?: string | undefined;
    readonly connectionName?: string | undefined;
    readonly db?: number | undefined;
    readonly sentinels?: readonly object[] | null | undefined;
  };
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The client's socket, while it has one. */
interface RedisStream {
  /** Changes whenever the server has sent something. */
  readonly bytesRead?: number;
  /** `undefined` while the socket is connecting. */
  readonly remoteAddress?: string | undefined;
  readonly remotePort?: number | undefined;
  cork(): void;
  uncork(): void;
}

/** The part of an ioredis `Cluster` that the backend uses. */
export interface RedisCluster {
  readonly status: string;
  readonly isCluster: boolean;
  readonly options: { readonly keyPrefix?: string | undefined; readonly natMap?: NatMap | null | undefined };
  connect(): Promise<void>;
  call(command: string): Promise<unknown>;
  nodes(role: 'all'): readonly RedisClusterNode[];
}

/** A connection of a `Cluster` to one of its nodes. */
export interface RedisClusterNode extends RedisClient {
  readonly options: {
    readonly host?: string | undefined;
    readonly port?: number | undefined;
    readonly keyPrefix?: string | undefined;
  };
}

/** Maps the `host:port` by which servers know each other to the address at which this process reaches them. */
export type NatMap = Readonly<Record<string, NatAddress>> | ((address: string) => NatAddress | null);

interface NatAddress {
  readonly host: string;
  readonly port: number;
}

/** Returns whether the client is connected to this address. May return false if the address has a host name. */
export function isConnectedTo({ stream, serverAddress }: RedisClient, { host, port }: NatAddress): boolean {
  if (serverAddress) return serverAddress.host === host && serverAddress.port === port;
  return stream?.remoteAddress?.replace(/^::ffff:/iu, '') === host && stream.remotePort === port;
}

export type RedisArgument = string | number;
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

export interface ClientSource {
  /** Client of the application, which the backend never disconnects. */
  readonly givenClient?: RedisClient;
  /** Makes a client that is not connected yet. */
  makeClient(): Promise<RedisClient>;
  /** Makes a client for subscriptions. @default `makeClient` */
  makeSubscriber?(): Promise<RedisClient>;
  /**
   * Calls `onNewMaster` for each announcement of another master by a Sentinel, with the master's address if it is known.
   * Returns a function that ends the watch.
   */
  watchMaster?(health: ReportedHealth, onNewMaster: (address?: NatAddress) => void): () => void;
}
