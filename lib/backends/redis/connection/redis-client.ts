import type { ReportedHealth } from '../../../core/index.js';

/** What is used of an ioredis client. Structural, so that `Redis` of ioredis 5 and of 6 both fit, also from a second copy. */
export interface RedisClient {
  readonly status: string;
  readonly isCluster: boolean;
  /** Its socket, while there is one. */
  readonly stream?: { readonly bytesRead?: number; cork(): void; uncork(): void } | undefined;
  readonly options?: object;
  call(command: string, ...args: RedisArgument[]): Promise<unknown>;
  duplicate(override?: object): RedisClient;
  connect(): Promise<void>;
  disconnect(reconnect?: boolean): void;
  on(event: string, listener: (...args: unknown[]) => void): unknown;
  off(event: string, listener: (...args: unknown[]) => void): unknown;
}

/** The same of an ioredis `Cluster`. */
export interface RedisCluster {
  readonly status: string;
  readonly isCluster: boolean;
  readonly options: { readonly keyPrefix?: string | undefined; readonly natMap?: NatMap | null | undefined };
  connect(): Promise<void>;
  nodes(role: 'all'): readonly RedisClusterNode[];
}

/** A connection of a `Cluster` to one of its nodes. */
export interface RedisClusterNode extends RedisClient {
  readonly options: { readonly host?: string | undefined; readonly port?: number | undefined };
}

/** Where servers are for us, by the `host:port` by which they know each other, or `null` where that is right. */
export type NatMap = Readonly<Record<string, NatAddress>> | ((address: string) => NatAddress | null);

interface NatAddress {
  readonly host: string;
  readonly port: number;
}

export type RedisArgument = string | number;
export type RedisCommand = readonly [name: string, ...args: RedisArgument[]];

/** Where a backend's connections come from, and whether they are its own to cut and to close. */
export interface ClientSource {
  /** The client that was given, if one was. */
  readonly given?: RedisClient;
  open(): Promise<RedisClient>;
  /** A connection of our own for the subscription, not connected yet. */
  openSubscriber(): Promise<RedisClient>;
  /** Calls `onSwitch` when another server has been made master, which our connections do not notice. What it returns ends that. */
  watchMaster?(health: ReportedHealth, onSwitch: () => void): () => void;
}
