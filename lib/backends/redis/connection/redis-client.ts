import type { ReportedHealth } from '../../../core/index.js';

/** The used part of an ioredis client. Structural: `Redis` of ioredis 5 and of 6 both fit, also from a second copy. */
export interface RedisClient {
  readonly status: string;
  readonly isCluster: boolean;
  /** Its socket, while there is one. */
  readonly stream?: { readonly bytesRead?: number; cork(): void; uncork(): void } | undefined;
  readonly options?: {
    readonly keyPrefix?: string | undefined;
    readonly connectionName?: string | undefined;
    readonly db?: number | undefined;
  };
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The used part of an ioredis `Cluster`. */
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

/** The address at which this process reaches a server, by the `host:port` by which the servers know each other. */
export type NatMap = Readonly<Record<string, NatAddress>> | ((address: string) => NatAddress | null);

interface NatAddress {
  readonly host: string;
  readonly port: number;
}

export type RedisArgument = string | number;
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

/** Makes the connections of a backend. */
export interface ClientSource {
  /** A client of the application's, which the backend neither cuts nor closes. */
  readonly given?: RedisClient;
  open(): Promise<RedisClient>;
  /** An own connection for the subscription, not connected yet. @default as `open` does */
  openSubscriber?(): Promise<RedisClient>;
  /** Calls `onSwitch` when another server is made master, which connections do not notice. Returns how to end that. */
  watchMaster?(health: ReportedHealth, onSwitch: () => void): () => void;
}
