import { RedisWorld, win } from './redis-world.js';

/** Longer than a test takes from a renewal until it looks what is left. */
const UNIT_MS = 20_000;

describe.each(['queue', 'plain'] as const)('renewals on Redis of one turn (%s)', (mode) => {
  const world = RedisWorld.shared();

  it('are one request for all, each is answered by itself, and each keeps its own TTL', async () => {
    const backend = world.backend({ mode });
    const short = await Promise.all(['a', 'b', 'c'].map((key) => win(backend, key, { ttlMs: 10 * UNIT_MS })));
    const long = await win(backend, 'long', { ttlMs: 20 * UNIT_MS });
    // From now on the server knows the script.
    expect(await long.renew()).toBe(true);
    await world.operator.del('lock:{b}');
    await world.operator.set('lock:{c}', 'somebody else', 'PX', 3 * UNIT_MS);
    for (const key of ['a', 'long']) await world.operator.pexpire(`lock:{${key}}`, 3 * UNIT_MS);
    let answers: boolean[] = [];
    const commands = await world.commandsDuring(async () => {
      answers = await Promise.all([...short, long].map((lease) => lease.renew()));
    });
    expect(answers).toEqual([true, false, false, true]);
    expect(commands.filter((command) => command.startsWith('eval'))).toHaveLength(1);
    expect(await leftUnits('a')).toBe(10);
    expect(await leftUnits('b')).toBe(0);
    expect(await leftUnits('c')).toBe(3);
    expect(await leftUnits('long')).toBe(20);
  });

  it('are no more than 250 to a request', async () => {
    const backend = world.backend({ mode });
    const leases = await Promise.all(Array.from({ length: 251 }, (_, i) => win(backend, `many-${i}`)));
    expect(await leases[0]?.renew()).toBe(true);
    let answers: boolean[] = [];
    const commands = await world.commandsDuring(async () => {
      answers = await Promise.all(leases.map((lease) => lease.renew()));
    });
    expect(answers).toEqual(leases.map(() => true));
    expect(commands.filter((command) => command.startsWith('eval'))).toHaveLength(2);
  });

  const leftUnits = async (key: string): Promise<number> =>
    Math.max(0, Math.ceil((await world.operator.pttl(`lock:{${key}}`)) / UNIT_MS));
});
