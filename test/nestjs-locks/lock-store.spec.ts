import { Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockConfigurationError, LockService } from 'nestjs-distributed-lock/core';
import { etcd } from 'nestjs-distributed-lock/etcd';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { type LockAcquireResult, lockStore, type LockStore } from 'nestjs-distributed-lock/nestjs-locks';
import { redis } from 'nestjs-distributed-lock/redis';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { zookeeper } from 'nestjs-distributed-lock/zookeeper';
import { failureOf, SLACK_MS } from '../conformance/contract.js';
import { RULES, type World } from './rules.js';

const dataSource = { options: { type: 'postgres' as const, url: 'postgres://127.0.0.1:1/none' } };

describe('lockStore', () => {
  it.each([
    ['zookeeper', 'session', () => zookeeper({ connectString: '127.0.0.1:1' })],
    ['etcd', 'session', () => etcd({ endpoints: ['http://127.0.0.1:1'] })],
    ['typeorm:postgres-session', 'connection', () => typeorm({ dataSource, strategy: 'session' })],
    ['typeorm:postgres-row', 'connection', () => typeorm({ dataSource, strategy: 'row' })],
  ] as const)('refuses %s, whose locks end with a %s', (name, endsWith, backend) => {
    expect(() => lockStore(backend())).toThrow(LockConfigurationError);
    expect(() => lockStore(backend())).toThrow(new RegExp(`${name} .* end with the ${endsWith} of a process`, 'u'));
  });

  it('refuses getset, which compares owners and writes in two steps', () => {
    expect(() => lockStore(redis({ url: 'redis://127.0.0.1:1', mode: 'getset' }))).toThrow(
      /in one step .* another mode/u,
    );
  });

  it('refuses what is no TTL, no key and no owner, before it asks', async () => {
    await using store = lockStore(memory());
    for (const ttl of [0, -1, 1.5, Number.NaN, Infinity, 30 * 86_400_000 + 1]) {
      await expect(failureOf(store.acquire('k', 'a', ttl))).resolves.toMatchObject({ option: 'ttl' });
      await expect(failureOf(store.renew('k', 'a', ttl))).resolves.toMatchObject({ option: 'ttl' });
    }
    for (const key of ['', '\ud800', 7 as never]) {
      await expect(failureOf(store.acquire(key, 'a', 1_000))).resolves.toMatchObject({ option: 'key' });
      await expect(failureOf(store.release(key, 'a'))).resolves.toMatchObject({ option: 'key' });
    }
    await expect(failureOf(store.acquire('k', undefined as never, 1_000))).resolves.toMatchObject({ option: 'owner' });
  });

  it('shares keys with a lock service on the same server', async () => {
    const world = new MemoryLeaseStore();
    await using locks = new LockService(world);
    await using store = lockStore(world);
    await locks.withLock('nightly', async () => {
      await expect(store.acquire('nightly', 'a', 1_000)).resolves.toEqual({ acquired: false });
    });
    await expect(store.acquire('nightly', 'a', 1_000)).resolves.toMatchObject({ acquired: true });
    await expect(locks.tryAcquire('nightly')).resolves.toBeNull();
  });

  it('opens and closes with an application of Nest, as a provider of a factory', async () => {
    const calls: string[] = [];
    class Watched extends MemoryLeaseStore {
      async start(): Promise<void> {
        calls.push('start');
      }
      override async close(): Promise<void> {
        calls.push('close');
      }
    }
    @Module({ providers: [{ provide: 'locks', useFactory: (): LockStore => lockStore(new Watched()) }] })
    class App {}
    const app = await Test.createTestingModule({ imports: [App] }).compile();
    await app.init();
    expect(calls).toEqual(['start']);
    await app.close();
    expect(calls).toEqual(['start', 'close']);
  });

  it('says that the backend failed, and frees what it could not release as soon as it can', async () => {
    let down = false;
    class Failing extends MemoryLeaseStore {
      override async release(key: string, owner: string): Promise<boolean> {
        if (down) throw new Error('down');
        return super.release(key, owner);
      }
    }
    const world = new Failing();
    await using store = lockStore(world);
    await store.acquire('k', 'a', 60_000);
    down = true;
    await expect(failureOf(store.release('k', 'a'))).resolves.toMatchObject({
      code: 'LOCK_BACKEND',
      operation: 'release',
    });
    down = false;
    await store.close();
    expect(world.held()).toEqual([]);
  });
});

/** A correct store in one map, and the ways to break it. */
class MapStore implements LockStore {
  protected static readonly locks = new Map<string, { owner: string; until: number; token: number }>();
  protected static lastToken = 0;

  async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    if (this.live(key)) return { acquired: false };
    return this.write(key, owner, ttl);
  }

  async renew(key: string, owner: string, ttl: number): Promise<boolean> {
    const lock = this.live(key);
    if (lock?.owner !== owner) return false;
    lock.until = performance.now() + ttl;
    return true;
  }

  async release(key: string, owner: string): Promise<boolean> {
    return this.live(key)?.owner === owner && MapStore.locks.delete(key);
  }

  protected write(key: string, owner: string, ttl: number): LockAcquireResult {
    const token = this.token(key);
    MapStore.locks.set(key, { owner, until: performance.now() + ttl, token });
    return { acquired: true, fencingToken: token };
  }

  protected live(key: string) {
    const lock = MapStore.locks.get(key);
    return lock && lock.until > performance.now() ? lock : undefined;
  }

  protected token(_key: string): number {
    return (MapStore.lastToken += 1);
  }
}

class ReleasesByKey extends MapStore {
  override async release(key: string): Promise<boolean> {
    return MapStore.locks.delete(key);
  }
}
class RevivesWhatHasExpired extends MapStore {
  override async renew(key: string, owner: string, ttl: number): Promise<boolean> {
    const lock = MapStore.locks.get(key);
    if (lock?.owner !== owner) return false;
    lock.until = performance.now() + ttl;
    return true;
  }
}
class RepeatsTokens extends MapStore {
  protected override token(): number {
    return 1;
  }
}
class LooksThenWrites extends MapStore {
  override async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    const held = this.live(key) !== undefined;
    await new Promise((resolve) => setImmediate(resolve));
    return held ? { acquired: false } : this.write(key, owner, ttl);
  }
}
class LetsOwnersInAgain extends MapStore {
  override async acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    const lock = this.live(key);
    return lock?.owner === owner ? { acquired: true, fencingToken: lock.token } : super.acquire(key, owner, ttl);
  }
}
class FoldsKeys extends MapStore {
  override acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    return super.acquire(key.normalize().toLowerCase(), owner, ttl);
  }
  override release(key: string, owner: string): Promise<boolean> {
    return super.release(key.normalize().toLowerCase(), owner);
  }
}
class CountsIn32Bits extends MapStore {
  override acquire(key: string, owner: string, ttl: number): Promise<LockAcquireResult> {
    return super.acquire(key, owner, ttl | 0);
  }
}

describe('the rules', () => {
  const brokenBy = async (store: new () => LockStore, rules = Object.keys(RULES)): Promise<string[]> => {
    let keys = 0;
    const world: World = {
      store: async () => new store(),
      key: () => `${store.name} ${(keys += 1)}`,
      ttlMs: 1_000,
      lateMs: SLACK_MS,
    };
    const broken = await Promise.all(
      rules.map(async (name) => {
        const failed = await Promise.resolve(RULES[name]?.(world)).then(
          () => false,
          () => true,
        );
        return failed ? [name] : [];
      }),
    );
    return broken.flat();
  };

  it('are kept by a correct store', async () => {
    await expect(brokenBy(MapStore)).resolves.toEqual([]);
  });

  it.each([
    [ReleasesByKey, 'lets the owner release, and raises the token'],
    [RevivesWhatHasExpired, 'renews for the owner only, and only what is there'],
    [RepeatsTokens, 'raises the token also for an owner who comes back'],
    [LooksThenWrites, 'lets one of sixteen win a free key'],
    [LetsOwnersInAgain, 'gives a free key to one owner, once'],
    [FoldsKeys, 'keeps keys and owners apart exactly'],
    [CountsIn32Bits, 'takes every text as an owner, and a TTL of 30 days'],
  ])('are broken by %p', async (store, rule) => {
    await expect(brokenBy(store, [rule])).resolves.toEqual([rule]);
  });
});
