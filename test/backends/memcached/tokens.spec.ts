import { describeWanted, eventually } from '../../support/index.js';
import { describeProtocols, MemcachedWorld, win } from './memcached-world.js';

/** The server's wall clock from its start on, which is all that it knows of it. */
const shifted = (hours: number) => ({
  LD_PRELOAD: '/usr/$LIB/faketime/libfaketime.so.1',
  FAKETIME: `${hours < 0 ? '-' : '+'}${Math.abs(hours) * 3_600}`,
  DONT_FAKE_MONOTONIC: '1',
});

describeProtocols('fencing tokens, %s', (options) => {
  it('M2: go on upwards over ten restarts that leave nothing, for clients of before and of after', async () => {
    await using world = await MemcachedWorld.start();
    const tokens: bigint[] = [];
    const veteran = world.backend(options);
    for (let round = 0; round < 10; round += 1) {
      for (const backend of [veteran, world.backend(options), veteran]) {
        const lease = await eventually(() => win(backend, 'k'));
        tokens.push(lease.fencingToken);
        await lease.release();
      }
      await world.server.restart({ empty: true });
    }
    expect(tokens).toEqual(tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(tokens).size).toBe(30);
    for (const token of tokens) expect(token).toBeLessThan(2n ** 52n);
  });

  it('come from a counter that stays for ten minutes, whoever asks meanwhile', async () => {
    await using world = await MemcachedWorld.start();
    const backend = world.backend(options);
    const remainingS = async (): Promise<number> =>
      Number(/ t(?<seconds>\d+)/u.exec(await world.server.ask('mg lock:f:k t v'))?.groups?.['seconds']);
    for (let round = 0; round < 3; round += 1) await (await win(backend, 'k')).release();
    expect(await remainingS()).toBeGreaterThan(590);
    expect(await remainingS()).toBeLessThanOrEqual(604);
  });

  it('M2: go on upwards when the counter alone is deleted, and when both are', async () => {
    await using world = await MemcachedWorld.start();
    const backend = world.backend(options);
    let last = 0n;
    for (const deleted of ['lock:f:k', 'lock:l:k', 'lock:f:k', 'filler']) {
      const lease = await win(backend, 'k');
      expect(lease.fencingToken).toBeGreaterThan(last);
      last = lease.fencingToken;
      await world.server.ask(`delete ${deleted}`);
      await lease.release();
    }
  });
});

describeWanted(['memcached'], 'fencing tokens', () => {
  it('M2: follow the server’s clock, not ours, so that a server an hour ahead does no harm as long as it stays so', async () => {
    await using world = await MemcachedWorld.start({ env: shifted(1) });
    const before = await win(world.backend(), 'k');
    expect(Number(before.fencingToken) / 1e3 - Date.now()).toBeGreaterThan(3_590_000);
    // Maximum error about the server's clock where the clock of this process does not help.
    await new Promise((resolve) => setTimeout(resolve, 2_500));
    await world.server.restart({ empty: true });
    const after = await win(world.backend(), 'k');
    expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
    // The limit: a clock that is set back over a loss. Only a resource that has seen the former token can tell.
    await world.server.restart({ empty: true, env: {} });
    const setBack = await win(world.backend(), 'k');
    expect(setBack.fencingToken).toBeLessThan(after.fencingToken);
  });
});
