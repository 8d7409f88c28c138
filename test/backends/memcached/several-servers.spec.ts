import { LockBackendError, LockConfigurationError, LockError, LockService } from 'nestjs-distributed-lock/core';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { atLeastMs, describeWanted, eventually, failureOf, freePort } from '../../support/index.js';
import { MemcachedServer } from '../../servers/memcached-server.js';

const KEYS = Array.from({ length: 300 }, (_, i) => `key-${i}`);
const LONG_TTL_MS = 60_000;

describeWanted(['memcached'], 'M7: several servers', () => {
  let servers: MemcachedServer[];
  const opened: LockService[] = [];

  beforeEach(async () => {
    servers = await Promise.all(Array.from({ length: 3 }, () => MemcachedServer.start()));
  });
  afterEach(async () => {
    await stopAll();
    await Promise.all(servers.map((server) => server.stop()));
  });

  /** A process that was told of these servers. */
  const over = (...addresses: readonly string[]): LockService => {
    const service = new LockService(memcached({ servers: addresses }));
    opened.push(service);
    return service;
  };
  const stopAll = () => Promise.all(opened.splice(0).map((service) => service.close(1_000)));
  /** With the one that asks. */
  const connectionsTo = async (server: MemcachedServer): Promise<string> => {
    const [said] = /STAT curr_connections \d+/u.exec(await server.ask('stats')) ?? [];
    if (said === undefined) throw new Error('memcached did not say how many connections it has');
    return said;
  };
  const addresses = (): string[] => servers.map(({ address }) => address);

  /** On which of the servers the lease is. */
  const homesOf = async (key: string): Promise<number[]> => {
    const found = await Promise.all(servers.map((server) => server.ask(`get lock:l:${key}`)));
    return found.flatMap((reply, i) => (reply === 'END\r\n' ? [] : [i]));
  };

  it('share the keys evenly, each key on one, whatever the order in which they are named', async () => {
    const [ours, theirs] = [over(...addresses()), over(...addresses().toReversed())];
    const locks = await Promise.all(KEYS.map((key) => ours.acquire(key, { ttlMs: LONG_TTL_MS })));
    const homes = await Promise.all(KEYS.map(homesOf));
    expect(homes.every((home) => home.length === 1)).toBe(true);
    for (const i of servers.keys()) {
      expect(homes.flat().filter((home) => home === i).length).toBeGreaterThan(KEYS.length / 5);
    }
    for (const key of KEYS) await expect(theirs.tryAcquire(key)).resolves.toBeNull();
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('of which one is down: its keys are errors and move nowhere, those of the others are as before', async () => {
    const service = over(...addresses());
    const lock = await service.acquire('key-0', { ttlMs: atLeastMs(2_000) });
    const [home = -1] = await homesOf('key-0');
    const down = (home + 1) % 3;
    await servers[down]?.kill();
    const outcomes = await Promise.all(
      KEYS.slice(1).map((key) => service.tryAcquire(key).then((got) => got?.release(), failureOfLock)),
    );
    const failed = outcomes.filter((outcome) => outcome instanceof Error);
    expect(failed.length).toBeGreaterThan(KEYS.length / 5);
    expect(failed.length).toBeLessThan(KEYS.length / 2);
    for (const error of failed)
      expect(error).toMatchObject({ message: expect.stringContaining(servers[down]?.address ?? '-') });
    expect(service.health).toMatchObject({
      status: 'down',
      detail: expect.stringContaining(servers[down]?.address ?? '-'),
    });
    // In doubt when a server went down, until its own one has renewed it.
    await eventually(() => lock.state === 'held');
    expect(service.health.status).toBe('down');
    await lock.release();
    await servers[down]?.restart({ empty: true });
    await eventually(() => service.health.status === 'up');
    for (const key of KEYS.slice(0, 30)) await (await service.acquire(key)).release();
  });

  it('of which one was never there: the others are locked on all the same', async () => {
    const nowhere = `127.0.0.1:${await freePort()}`;
    const service = over(...addresses().slice(0, 2), nowhere);
    const outcomes = await Promise.all(
      KEYS.map((key) => service.tryAcquire(key).then((got) => got?.release(), failureOfLock)),
    );
    const failed = outcomes.filter((outcome) => outcome instanceof LockBackendError);
    expect(failed.length).toBeGreaterThan(KEYS.length / 5);
    expect(failed.length).toBeLessThan(KEYS.length / 2);
  });

  it('are all or none: whoever names other ones is refused, before he locks anything anywhere', async () => {
    const [a = '', b = '', c = ''] = addresses();
    const connectionsWithoutUs = await Promise.all(servers.map(connectionsTo));
    const first = over(a, b);
    const locks = await Promise.all(KEYS.slice(0, 50).map((key) => first.acquire(key, { ttlMs: LONG_TTL_MS })));
    for (const others of [[a], [b], [a, b, c], [b, c]]) {
      const service = over(...others);
      for (const key of KEYS.slice(0, 50)) {
        await expect(service.tryAcquire(key)).rejects.toBeInstanceOf(LockError);
      }
      const refusal = await eventually(async () => {
        const error = await failureOf(service.tryAcquire('key-0'));
        expect(error).toBeInstanceOf(LockConfigurationError);
        return error;
      });
      expect(refusal).toMatchObject({ option: 'servers', message: expect.stringContaining('on other servers') });
    }
    await expect(servers[2]?.ask('stats items')).resolves.not.toContain('lock:l');
    const homes = await Promise.all(KEYS.slice(0, 50).map(homesOf));
    expect(homes.flat()).not.toContain(2);
    await Promise.all(locks.map((lock) => lock.release()));
    // The way that the error describes. What a process had sent when it was stopped may arrive later.
    await stopAll();
    await eventually(async () => expect(await Promise.all(servers.map(connectionsTo))).toEqual(connectionsWithoutUs));
    for (const server of servers) await server.ask('delete lock:servers');
    await (await over(a, b, c).acquire('key-0')).release();
  });

  it('of which most cannot be asked: nothing is locked on the others either', async () => {
    const nowhere = [`127.0.0.1:${await freePort()}`, `127.0.0.1:${await freePort()}`];
    const service = over(...addresses().slice(0, 1), ...nowhere);
    for (const key of KEYS.slice(0, 20)) {
      const refused = service.tryAcquire(key);
      await expect(refused).rejects.toThrow('only 1 of 3 servers could be asked which servers others use');
    }
  });

  it('that change while processes run would let a second holder in: keys do move', async () => {
    const [a = '', b = '', c = ''] = addresses();
    const moved: string[] = [];
    const before = over(a, b, c);
    const locks = await Promise.all(KEYS.slice(0, 50).map((key) => before.acquire(key, { ttlMs: LONG_TTL_MS })));
    for (const server of servers) await server.ask('delete lock:servers');
    const after = over(a, b);
    for (const key of KEYS.slice(0, 50)) if ((await after.tryAcquire(key)) !== null) moved.push(key);
    expect(moved.length).toBeGreaterThan(5);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('may be one server with two names, if it is the only one', async () => {
    const [ours, theirs] = [over(`127.0.0.1:${servers[0]?.port}`), over(`localhost:${servers[0]?.port}`)];
    const lock = await ours.acquire('k');
    await expect(theirs.tryAcquire('k')).resolves.toBeNull();
    await lock.release();
  });
});

function failureOfLock(error: unknown): unknown {
  return error;
}
