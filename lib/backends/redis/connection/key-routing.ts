import { type ReportedHealth, systemClock } from '../../../core/index.js';
import { isCrossSlotError } from '../error.js';
import { createUnusedName, leaseKeyOf } from '../scripts/redis-values.js';
import { slotOf } from './key-slot.js';
import type { RedisArgument, RedisCommand } from './redis-client.js';

const SLOTS_ADVICE =
  'the server refuses commands with keys of several slots (CROSSSLOT), as managed clusters behind one address do: ' +
  'requests of one slot share a command, others go out one by one';
const PROXY_ADVICE =
  'the server is a proxy that sends a command to the server of its first key: requests for several keys share no command';

/** Number of keys in a test. Behind a proxy of two servers, all keys belong to one server in 1 of 32,768 tests only. */
const TESTED_KEY_COUNT = 16;
const TESTED_KEY_TTL_MS = 5_000;
const FAILED_TEST_RETRY_MS = 1_000;
/** Time until the next test, if a tested key was missing: an eviction or a stall of the server may be the reason. */
const RETEST_MS = 60_000;
const WRITE_KEYS_SCRIPT = `
for _, key in ipairs(KEYS) do redis.call('SET', key, '', 'PX', ARGV[1]) end
return 1
`;

type SendCommands = (commands: readonly RedisCommand[]) => Promise<readonly unknown[]>;

/**
 * Decides which keys may share a command. A proxy may send a command to the server of its first key, and the other keys
 * would be locked on the wrong server. Unless the slots are known, only calls for one key share a command, until a test
 * shows that the server keeps all keys.
 */
export class KeyRouting {
  #keepsAllKeys = false;
  #nextTestAt = 0;

  constructor(
    private readonly health: Pick<ReportedHealth, 'setAdvice'>,
    /** Start of the names of the tested keys. */
    private readonly prefix: string,
    /** Returns the slot of a key, for a server that refuses a command with keys of several slots. */
    private slotOfKey?: (leaseKey: string) => number,
  ) {}

  get needsTest(): boolean {
    return !this.#keepsAllKeys && !this.slotOfKey && systemClock.now() >= this.#nextTestAt;
  }

  /** Returns the same value for keys that may share a command. */
  getKeyGroup(leaseKey: string): number | string {
    if (this.slotOfKey) return this.slotOfKey(leaseKey);
    return this.#keepsAllKeys ? 0 : leaseKey;
  }

  onErrorReply(error: Error, keyPrefix: string): void {
    if (!isCrossSlotError(error) || this.slotOfKey) return;
    this.slotOfKey = (leaseKey) => slotOf(keyPrefix + leaseKey);
    this.health.setAdvice('slots', SLOTS_ADVICE);
  }

  /**
   * Tests whether the server keeps all keys that one command writes. Deletes each key by a command of its own, which a
   * proxy sends to that key's server. Never rejects.
   */
  async test(send: SendCommands): Promise<void> {
    this.#nextTestAt = Infinity;
    const keys = Array.from({ length: TESTED_KEY_COUNT }, () => leaseKeyOf(this.prefix, createUnusedName()));
    const writeCommand: readonly [string, ...RedisArgument[]] = [
      'EVAL',
      WRITE_KEYS_SCRIPT,
      keys.length,
      ...keys,
      TESTED_KEY_TTL_MS,
    ];
    try {
      const [, ...deletedCounts] = await send([writeCommand, ...keys.map((key) => ['DEL', key] as const)]);
      this.#keepsAllKeys = deletedCounts.every((count) => Number(count) === 1);
      this.#nextTestAt = systemClock.now() + RETEST_MS;
      this.health.setAdvice('routing', this.#keepsAllKeys ? undefined : PROXY_ADVICE);
    } catch {
      // The server may be loading, or refuse all writes.
      this.#nextTestAt = systemClock.now() + FAILED_TEST_RETRY_MS;
    }
  }
}
