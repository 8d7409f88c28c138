import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { ServiceWorld } from './service-world.js';

describe('LockService', () => {
  let world = new ServiceWorld();
  let { backend, locks } = world;
  beforeEach(() => {
    world = new ServiceWorld();
    ({ backend, locks } = world);
  });
  afterEach(() => world.locks.close());

  describe('bad input', () => {
    it.each<[object, string]>([
      [{ ttlMs: 0 }, 'ttlMs must be a number from 10 to 2147483647; it was 0'],
      [{ ttlMs: 2 ** 31 }, 'ttlMs'],
      [{ ttlMs: Number.NaN }, 'ttlMs'],
      [{ waitMs: -1 }, 'waitMs must be a number from 0 up, or Infinity; it was -1'],
      [{ maxHoldMs: 0 }, 'maxHoldMs'],
      [{ ttlMs: '5s' }, 'ttlMs must be a number from 10 to 2147483647; it was "5s"'],
      [{ ttl: 5 }, 'ttl is no acquire option; there are ttlMs'],
      [{ watchdog: 1 }, 'watchdog must be true or false'],
    ])('refuses %p', async (options, message) => {
      await expect(locks.acquire('k', options)).rejects.toThrow(message);
      expect(() => world.service({ defaults: options })).toThrow(LockConfigurationError);
    });

    it('refuses impossible service options', () => {
      expect(() => world.service({ maxHandOffs: 2_001 })).toThrow(
        'maxHandOffs must be a whole number from 0 to 2000; it was 2001',
      );
      expect(() => world.service({ namespace: 'a:b' })).toThrow('because a colon ends it');
    });

    it.each<[object, string]>([
      [{ label: 7 }, 'label must be a text of 1 to 1000 characters; it was 7'],
      [{ label: 'x'.repeat(1_001) }, 'label must be a text'],
      [{ observers: { lost: () => undefined } }, 'observers must be a list of objects'],
      [{ observers: [undefined] }, 'observers must be a list of objects'],
      [{ orderWarnings: 'yes' }, 'orderWarnings must be true, false or a function; it was "yes"'],
      [{ clock: { now: () => 0 } }, 'clock must be an object with the methods now and schedule; it was { now:'],
      [{ clock: null }, 'it was null'],
    ])('refuses the service options %p', (options, message) => {
      expect(() => world.service(options)).toThrow(LockConfigurationError);
      expect(() => world.service(options)).toThrow(message);
    });

    it('refuses a TTL that the backend cannot keep, where it is given', async () => {
      const slow = Object.assign(backend, { traits: { ttlLimits: { minMs: 2_000, maxMs: 60_000 } } });
      const refusal = 'ttlMs must be from 2000 to 60000 with test; it was';
      expect(() => new LockService(slow, { defaults: { ttlMs: 1_999 } })).toThrow(`${refusal} 1999`);
      await expect(locks.acquire('k', { ttlMs: 60_001 })).rejects.toThrow(`${refusal} 60001`);
      await expect(locks.tryAcquire('k', { ttlMs: 500 })).rejects.toBeInstanceOf(LockConfigurationError);
      expect(backend.held).toEqual([]);
      await (await locks.acquire('k', { ttlMs: 2_000 })).release();
    });

    it.each(['', '\ud800', 'x'.repeat(4_097), '\u00e9'.repeat(2_049), undefined, null, {}, ['a'], 42])(
      'refuses the key %p before it asks anybody',
      async (key) => {
        await expect(locks.acquire(key as string)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
        expect(backend.held).toEqual([]);
      },
    );

    it('keeps apart what only looks alike', async () => {
      const alike = [
        '\u00e9',
        'e\u0301',
        'E\u0301',
        'a',
        'a ',
        ' a',
        'a\n',
        'a\0',
        '*',
        '__proto__',
        'constructor',
        'a/b',
      ];
      for (const key of alike) expect(await locks.tryAcquire(key)).not.toBeNull();
      expect(backend.held).toHaveLength(alike.length);
    });
  });
});
