import type { LockBackend } from 'nestjs-distributed-lock/core';
import type { Connection } from '../support/harness-connection.js';

/** On 127.0.0.1: a server, or a proxy in front of one. */
export interface Listener {
  readonly port: number;
}

/** A backend and its server. `null` stands for what it cannot do: data, so that no test is skipped. */
export interface BackendHarness {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** An independent client: stands for another process. Whoever calls this closes it. */
  connect(): Promise<LockBackend>;
  /** How a process of its own connects, by way of another port too. `null`: no other process can. */
  readonly connection: ((through?: Listener) => Connection) | null;
  /** The listener on the network, for a proxy to stand in front of. Absent: nothing listens. */
  readonly server?: () => Listener;
  /** How many requests clients have sent so far, where one proxy cannot count them: the servers do. */
  readonly requests?: () => Promise<number>;
  /** The present holder loses the key behind its back. */
  revoke(key: string): Promise<void>;
  /** No operator can tell whose key it is: with it, every other holder loses his. @default false */
  readonly revokesOthers?: boolean;
  /** All that is ours on the server under `key`, counters of fencing tokens apart. */
  leftovers(key: string): Promise<readonly string[]>;
  /** Stops the server from answering without closing a connection; what it returns lets it go on. */
  readonly freeze: (() => Promise<() => Promise<void>>) | null;
  /** Kills the server and starts it again, with nothing or with all it had. */
  readonly restart: ((options: { readonly empty: boolean }) => Promise<void>) | null;
  /** Whether callers of different processes get the key in the order in which they came. */
  readonly order: 'fifo' | 'none';
  /**
   * Each lease is one holder's own transaction: no caller of the process inherits it, and work has succeeded when it is
   * committed. @default false
   */
  readonly transactional?: boolean;
  /** A lock ends with the connection it was taken on, and so with every restart of its server. @default false */
  readonly boundToConnection?: boolean;
  /** `false` for a key that is refused, by a table that is not of our making. @default every key is taken */
  keeps?(key: string): boolean;
  /** Whether one who waits can be told who is in the way. */
  readonly namesHolder: boolean;
  /**
   * What else `LockService.look` tells, and what can be done from outside, where `namesHolder` is true. `line`: those who
   * wait are known by their owners alone.
   */
  readonly looks: readonly ('token' | 'leftMs' | 'waiters' | 'line' | 'evict' | 'keys')[];
  /** Whether several may hold a key, as readers or with permits. @default false: that is refused */
  readonly shares?: boolean;
  /** Whether a process can pass its lock on to another. @default false: that is refused */
  readonly transfers?: boolean;
  /** The smallest TTL worth testing. */
  readonly shortTtlMs: number;
  /** How much later than its TTL the server may let a lease end, when it counts in coarse units. @default 0 */
  readonly expiresLateMs?: number;
  /** How soon after a release another process has the key. */
  readonly wakesWithinMs: number;
}
