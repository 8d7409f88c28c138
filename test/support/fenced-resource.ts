import { Redis } from 'ioredis';

import type { ResourceWrite } from './history-checker.js';
import { wantsAll } from './wanted.js';

/**
 * KEYS: [1] the newest token seen, [2] the log of writes. ARGV: [1] the token, padded so that text compares like numbers, as
 * it may exceed what Lua counts exactly; [2] the write, as JSON; [3] whether it raises the fence. Returns 1 when accepted, 0
 * when refused.
 */
const WRITE = `
local newest = redis.call('GET', KEYS[1])
local accepted = (not newest or ARGV[1] >= newest) and 1 or 0
if accepted == 1 and ARGV[3] == 'raise' then redis.call('SET', KEYS[1], ARGV[1]) end
redis.call('RPUSH', KEYS[2], accepted .. ARGV[2])
return accepted`;

/** A lock on its way to another process. */
export interface PassedLock {
  readonly key: string;
  /** As `Hammering.claims` has it. */
  readonly claim: string;
  readonly ticket: string;
}

/** The locks of a test protect it: shared by its processes, on a server that no fault touches, and it fences. */
export class FencedResource implements Disposable {
  readonly #redis: Redis;

  /** @param url a redis server of its own, apart from the one that locks */
  constructor(url: string) {
    this.#redis = new Redis(url);
  }

  /** Resolves to whether it was accepted: it is, unless a newer token of somebody who had the key alone has been seen. */
  async write({ key, token, owner, proc }: Omit<ResourceWrite, 'accepted'>): Promise<boolean> {
    const record = JSON.stringify({ token: String(token), owner, proc });
    const padded = String(token).padStart(20, '0');
    const args = [padded, record, wantsAll(owner) ? 'raise' : 'check'];
    return (await this.#redis.eval(WRITE, 2, `newest:${key}`, `writes:${key}`, ...args)) === 1;
  }

  /** All writes to the key, in the order in which they arrived. */
  async writes(key: string): Promise<ResourceWrite[]> {
    const entries = await this.#redis.lrange(`writes:${key}`, 0, -1);
    return entries.map((entry) => {
      const { token, owner, proc } = JSON.parse(entry.slice(1)) as Record<'token' | 'owner' | 'proc', string>;
      return { key, token: BigInt(token), owner, proc, accepted: entry.startsWith('1') };
    });
  }

  /** Gives a lock to whichever process takes it next. */
  async pass(passed: PassedLock): Promise<void> {
    await this.#redis.rpush('tickets', JSON.stringify(passed));
  }

  async takePassed(): Promise<PassedLock | undefined> {
    const passed = await this.#redis.lpop('tickets');
    return passed === null ? undefined : (JSON.parse(passed) as PassedLock);
  }

  [Symbol.dispose](): void {
    this.#redis.disconnect();
  }
}
