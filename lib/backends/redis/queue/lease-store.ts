import { randomInt } from 'node:crypto';
import {
  type Asker,
  type HolderMetadata,
  isExclusive,
  type LeaseAttempt,
  type LeaseState,
  type LeaseStore,
  MOST_PERMITS,
  MAX_WAITERS,
  packMetadata,
  type WakeUps,
  NotSentError,
} from '../../../core/index.js';
import { isUndeclaredKey } from '../error.js';
import type { RedisArgument } from '../connection/redis-client.js';
import type { Question, RedisServers } from '../connection/redis-servers.js';
import { CHECK_TTL_MS, RedisLeaseStore } from '../lease-store.js';
import { ASK_SHARED, type QueueScripts, queueScripts } from '../scripts/queue-scripts.js';
import { asList, isOne, leaseKeyOf, nobody, queueKeysOf, shareKeysOf } from '../scripts/redis-values.js';
import { holderOf, stateOf } from './key-reading.js';
import type { WakeUpChannels } from './wake-up-channel.js';

/** How long a waiter sleeps that cannot be woken, give or take half. */
const POLL_MS = 100;
/**
 * How long a waiter in line sleeps at most, give or take an eighth. A wake-up may be lost with a connection that died
 * unseen, and the queue passes over waiters that do not ask: see `SILENT_MS` of the scripts.
 */
const LOOK_MS = 3_500;
/** The later in the queue, the later the look after the end of a lease: the first who looks wakes the next holder. */
const DELAY_PER_INDEX_MS = 25;
const MOST_DELAY_MS = 250;
/** How many owners in the line are remembered. */
const MOST_REMEMBERED = 5_000;

const COMMANDS = 'SET GET DEL TIME PTTL PEXPIRE LINDEX LPOS LREM RPUSH HGET HSET HDEL'.split(' ');

type Scripts = QueueScripts['exclusive'];
type ClaimKind = 'exclusive' | 'shared';

/**
 * Waiters stand in line on the server, and a release hands the key to the first of them that still listens: no herd,
 * first come first served over all processes. A grant is one script, and the queue needs no clean-up, because who does
 * not answer is skipped. Every waiter asks by itself as well, a few times in ten seconds, which is its sign of life.
 */
export class QueueLeaseStore extends RedisLeaseStore implements LeaseStore {
  override readonly traits = { keepsOrder: true, maxPermits: MOST_PERMITS };
  readonly #waiters: WakeUps;
  #scripts: QueueScripts;
  /** Whether calls name all their keys. `undefined`: no call was answered yet that would tell whether they have to. */
  #declaresKeys: boolean | undefined;
  /**
   * The last owners that were refused, or not answered, while they waited, and the keys of those that have left. An
   * owner is used once: a key that is handed to one who has left answers a question that the network delivered late.
   */
  readonly #inLine = new Map<string, string | undefined>();

  constructor(
    servers: RedisServers,
    prefix: string,
    minReplicas: number,
    private readonly channels: WakeUpChannels,
  ) {
    super(servers, prefix, minReplicas);
    this.#waiters = channels.wakeUps;
    const { sharded } = channels;
    if (sharded) this.#declaresKeys = true;
    this.#scripts = queueScripts({ sharded, declaresKeys: sharded });
    // An owner who has the lease did not leave.
    this.#waiters.onStray((owner) => {
      const key = this.#inLine.get(owner);
      if (key !== undefined) this.release(key, owner).catch(() => undefined);
    });
  }

  protected readonly commands = COMMANDS;

  tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    asker?: Asker,
  ): Promise<LeaseAttempt> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    const address = this.#waiters.has(owner) ? this.channels.addressOf(leaseKey) : undefined;
    const args = [owner, Math.ceil(ttlMs), `${address ?? ''}|${packMetadata(metadata)}`];
    return this.#ask('acquire', leaseKey, kindOf(owner), args, {
      confirmation: this.confirmation,
      read: (replies) => this.#attemptOf(leaseKey, owner, replies),
      asker,
      onFailure: (error) => {
        if (!(error instanceof NotSentError)) this.#noteInLine(owner);
      },
    });
  }

  release(key: string, owner: string): Promise<boolean> {
    if (this.#inLine.has(owner)) this.#inLine.set(owner, key);
    return this.#ask('release', leaseKeyOf(this.prefix, key), kindOf(owner), [owner], { read: isOne });
  }

  override renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    if (isExclusive(owner)) return super.renew(key, owner, ttlMs);
    return this.renewBy(this.#scripts.shared.renew, shareKeysOf(leaseKeyOf(this.prefix, key)), owner, ttlMs);
  }

  override isHeldBy(key: string, owner: string): Promise<boolean> {
    if (isExclusive(owner)) return super.isHeldBy(key, owner);
    const keys = shareKeysOf(leaseKeyOf(this.prefix, key));
    const requests = [{ script: this.#scripts.shared.has, keys, args: [owner] }];
    return this.servers.ask(keys[0], { requests, read: isOne });
  }

  look(key: string): Promise<LeaseState> {
    const leaseKey = leaseKeyOf(this.prefix, key);
    return this.#ask('look', leaseKey, 'exclusive', [MAX_WAITERS], { read: ([reply]) => stateOf(reply) });
  }

  /** One owner takes the key, and another one waits for it in the queue. */
  protected async check(): Promise<void> {
    const [key, holder, waiter] = [nobody(), nobody(), nobody()];
    const leaseKey = leaseKeyOf(this.prefix, key);
    const argsOf = (owner: string, channel: string) => [owner, CHECK_TTL_MS, `${channel}|`];
    const ignored = { read: () => undefined };
    await Promise.all([
      this.#ask('acquire', leaseKey, 'exclusive', argsOf(holder, ''), { ...ignored, confirmation: this.confirmation }),
      this.#ask('acquire', leaseKey, 'exclusive', argsOf(waiter, 'nobody'), ignored),
      this.renew(key, holder, CHECK_TTL_MS),
      this.release(key, waiter),
      this.release(key, holder),
    ]);
    await this.servers.ask(leaseKey, { requests: [['DEL', ...queueKeysOf(leaseKey)]], ...ignored });
  }

  watch(_key: string, owner: string, wake: () => void): () => void {
    return this.#waiters.watch(owner, wake);
  }

  override async close(): Promise<void> {
    await Promise.all([this.channels.close(), super.close()]);
  }

  #ask<T>(
    operation: keyof Scripts,
    leaseKey: string,
    kind: ClaimKind,
    args: readonly RedisArgument[],
    question: Omit<Question<T>, 'requests'>,
  ): Promise<T> {
    const script = this.#scripts[kind][operation];
    const keys = queueKeysOf(leaseKey).slice(0, script.keys);
    const read = (replies: readonly unknown[]): T | Promise<T> =>
      replies[0] === ASK_SHARED ? this.#ask(operation, leaseKey, 'shared', args, question) : question.read(replies);
    const answer = this.servers.ask(leaseKey, { ...question, requests: [{ script, keys, args }], read });
    if (this.#declaresKeys !== undefined) return answer;
    const onAnswer = (value: T): T => {
      this.#declaresKeys ??= false;
      return value;
    };
    return answer.then(onAnswer, (error: unknown) => {
      if (!(error instanceof Error && isUndeclaredKey(error))) throw error;
      this.#declareKeys();
      return this.#ask(operation, leaseKey, kind, args, question);
    });
  }

  /** From now on calls name all their keys: this server refuses others. Nothing of the refused one was carried out. */
  #declareKeys(): void {
    this.#declaresKeys = true;
    this.#scripts = queueScripts({ sharded: this.channels.sharded, declaresKeys: true });
  }

  #noteInLine(owner: string): void {
    if (this.#inLine.has(owner)) return;
    this.#inLine.set(owner, undefined);
    if (this.#inLine.size <= MOST_REMEMBERED) return;
    const [oldest = owner] = this.#inLine.keys();
    this.#inLine.delete(oldest);
  }

  #attemptOf(leaseKey: string, owner: string, [reply, copies]: readonly unknown[]): LeaseAttempt {
    const [acquired, tokenOrLeft, lease, index] = asList(reply);
    if (Number(acquired) === 1) {
      this.assertConfirmed(copies);
      return { acquired: true, fencingToken: BigInt(String(tokenOrLeft)) };
    }
    if (this.#waiters.has(owner)) {
      this.#noteInLine(owner);
      this.channels.open(leaseKey);
    }
    const holder = holderOf(String(lease));
    return {
      acquired: false,
      retryAfterMs: retryAfter(Number(tokenOrLeft), Number(index)),
      ...(holder ? { holder } : {}),
    };
  }
}

function kindOf(owner: string): ClaimKind {
  return isExclusive(owner) ? 'exclusive' : 'shared';
}

/** `leftMs` is negative for a lease without an end, which somebody else has written. */
function retryAfter(leftMs: number, index: number): number {
  const left = leftMs < 0 ? Infinity : leftMs;
  if (index < 0) return Math.min(left, vary(POLL_MS, POLL_MS / 2));
  return Math.min(left + Math.min(index * DELAY_PER_INDEX_MS, MOST_DELAY_MS), vary(LOOK_MS, LOOK_MS / 8));
}

function vary(ms: number, by: number): number {
  return ms - by + randomInt(2 * Math.ceil(by) + 1);
}
