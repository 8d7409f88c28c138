import { atLeastMs, describeWanted, eventually, timeLimitOf } from '../../support/index.js';
import { RedlockWorld, type WorldOptions } from './redlock-world.js';

/** TTL of a lock that its process has to renew in time. */
const TTL_MS = atLeastMs(600);

const RIGHTS = '~redlock:* +eval +evalsha +get +set +del +pttl +pexpire +time +info';
const PASSWORD = 'secret';

describeWanted(['redlock'], 'the rights that %s needs', () => {
  const world = RedlockWorld.shared(3);
  beforeAll(async () => {
    // A node that is younger than the quarantine does not vote.
    await eventually(async () => {
      for (const operator of world.operators)
        expect(await operator.info('server')).not.toContain('uptime_in_seconds:0');
    });
  });

  const allow = async (rights: readonly string[]): Promise<WorldOptions> => {
    for (const operator of world.operators) {
      await operator.acl('SETUSER', 'app', 'reset', 'on', `>${PASSWORD}`, ...rights);
      await operator.script('FLUSH');
      await operator.acl('LOG', 'RESET');
    }
    return {
      urls: world.urls.map((url) => url.replace('//', `//app:${PASSWORD}@`)),
      restartQuarantineMs: 1,
    };
  };
  /**
   * Commands that any server refused since the last reset, in clients and in scripts, without CLIENT and the choice of database 0. Any: a lock
   * is taken by a quorum, and the one that is not in it may hear of the next candidate first.
   */
  const denied = async (): Promise<string[]> => {
    const logs = await Promise.all(world.operators.map((operator) => operator.acl('LOG')));
    const entries = logs.flatMap((log) => {
      if (!Array.isArray(log)) throw new Error('an ACL log is a list');
      return log;
    });
    const objects = entries.map((entry) => (Array.isArray(entry) ? String(entry[entry.indexOf('object') + 1]) : ''));
    return objects.filter((object) => !/^(?:client|select)/u.test(object));
  };
  const toil = async (options: WorldOptions, key = 'key'): Promise<void> => {
    const [ours, theirs] = [world.service(options), world.service(options)];
    await theirs.withLock('warm-up', () => undefined);
    const lock = await ours.acquire(key, { ttlMs: TTL_MS, waitMs: timeLimitOf(1_000) });
    await theirs.tryAcquire(key);
    // Until it has been renewed.
    await new Promise((resolve) => setTimeout(resolve, TTL_MS + 100));
    expect(lock.isHeld).toBe(true);
    await expect(theirs.evict(key)).resolves.toMatchObject({ pid: process.pid });
    await lock.release();
  };

  it('are those of the documentation', async () => {
    await toil(await allow(RIGHTS.split(' ')));
    await expect(denied()).resolves.toEqual([]);
  });

  it.each(RIGHTS.split(' ').filter((right) => right.startsWith('+')))(
    'and none of them is too many: %s is missed',
    async (right) => {
      const options = await allow(RIGHTS.split(' ').filter((other) => other !== right));
      // A key of its own: the one before may have kept its lease on a server, where nothing would be renewed then.
      await toil(options, right).catch(() => undefined);
      await eventually(async () => expect(await denied()).toContain(right.slice(1)));
    },
  );

  it('do not include INFO without a quarantine', async () => {
    const options = await allow(RIGHTS.split(' ').filter((right) => right !== '+info'));
    await toil({ ...options, restartQuarantineMs: 0 });
    // Only the advice about the server's memory is missed.
    expect(new Set(await denied())).toEqual(new Set(['info']));
  });
});
