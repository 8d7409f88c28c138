import { Redis } from 'ioredis';
import { createRequire } from 'node:module';
import { type Contestant, type Locker, RETRY_PAUSE, type Terms } from './contestant.js';
import { importPackage } from './import-package.js';
import { urlOf } from './url-of.js';

type Work = () => Promise<void> | void;

const PAUSE_MS = (RETRY_PAUSE.shortestMs + RETRY_PAUSE.longestMs) / 2;
const JITTER_MS = (RETRY_PAUSE.longestMs - RETRY_PAUSE.shortestMs) / 2;

/** Other libraries for Redis. Each is used as its documentation shows, and waits as long as this library. */
export const REDIS_PEERS: readonly Contestant[] = [
  ioredisContestant('redlock 4', 'redlock-4', false, async (client, { ttlMs, waitMs }) => {
    const { default: Redlock } = await importPackage<Redlock4>('redlock-4');
    const redlock = new Redlock([client], redlockSettings(waitMs));
    return async (key, work) => {
      const lock = await redlock.lock(key, ttlMs);
      try {
        await work();
      } finally {
        await lock.unlock();
      }
    };
  }),
  ioredisContestant('redlock 5', 'redlock-5', true, async (client, { ttlMs, waitMs }) => {
    const { default: Redlock } = await importPackage<Redlock5>('redlock-5');
    const redlock = new Redlock([client], redlockSettings(waitMs));
    return (key, work) => redlock.using([key], ttlMs, async () => work());
  }),
  ioredisContestant('@anchan828/nest-redlock', '@anchan828/nest-redlock', true, async (client, { ttlMs, waitMs }) => {
    // Its ES modules import files without extensions, which Node cannot resolve.
    const { RedlockService } = createRequire(import.meta.url)('@anchan828/nest-redlock') as NestRedlock;
    const redlock = new RedlockService({ clients: [client], settings: redlockSettings(waitMs) });
    return (key, work) => redlock.using([key], ttlMs, async () => work());
  }),
  ioredisContestant('redis-semaphore', 'redis-semaphore', true, async (client, { ttlMs, waitMs }) => {
    const { Mutex } = await importPackage<RedisSemaphore>('redis-semaphore');
    const settings = { lockTimeout: ttlMs, acquireTimeout: waitMs, retryInterval: PAUSE_MS };
    return async (key, work) => {
      const mutex = new Mutex(client, key, settings);
      await mutex.acquire();
      try {
        await work();
      } finally {
        await mutex.release();
      }
    };
  }),
  ioredisContestant('@verrou/core', '@verrou/core', false, async (client, { ttlMs, waitMs }) => {
    const { LockFactory } = await importPackage<Verrou>('@verrou/core');
    const { redisStore } = await importPackage<VerrouRedis>('@verrou/core/drivers/redis');
    const retry = { delay: PAUSE_MS, timeout: waitMs };
    const locks = new LockFactory(redisStore({ connection: client }).factory(), { retry });
    return async (key, work) => {
      const [acquired] = await locks.createLock(key, ttlMs).run(async () => work());
      if (!acquired) throw new Error(`not had within ${waitMs} ms`);
    };
  }),
  ioredisContestant('redlock-universal', 'redlock-universal', true, async (client, { ttlMs, waitMs }) => {
    const { createLock, IoredisAdapter } = await importPackage<RedlockUniversal>('redlock-universal');
    const adapter = new IoredisAdapter(client);
    const retry = { retryDelay: PAUSE_MS, retryAttempts: Math.ceil(waitMs / PAUSE_MS) };
    return (key, work) => createLock({ adapter, key, ttl: ttlMs, ...retry }).using(async () => work());
  }),
  {
    name: 'murlock',
    packageName: 'murlock',
    renewsLease: false,
    connect: async (to, { ttlMs, waitMs }) => {
      const { MurLockModule, MurLockService } = await importPackage<Murlock>('murlock');
      const { NestFactory } = await importPackage<Nest>('@nestjs/core');
      const module = MurLockModule.forRoot({
        redisOptions: { url: urlOf(to), socket: {} },
        wait: PAUSE_MS,
        maxAttempts: Math.ceil(waitMs / PAUSE_MS),
        logLevel: 'none',
        ignoreUnlockFail: false,
      });
      const context = await NestFactory.createApplicationContext(module, { logger: false });
      const locks = context.get(MurLockService);
      return {
        withLock: (key, work) => locks.runWithLock(key, ttlMs, PAUSE_MS, async () => work()),
        close: () => context.close(),
      };
    },
  },
];

/** Mutex of one process, without a server: an upper limit for every distributed lock. */
export const MUTEX: Contestant = {
  name: 'async-mutex, one process only',
  packageName: 'async-mutex',
  renewsLease: false,
  isLocalOnly: true,
  connect: async () => {
    const { Mutex } = await importPackage<AsyncMutex>('async-mutex');
    const mutexes = new Map<string, InstanceType<AsyncMutex['Mutex']>>();
    return {
      withLock: (key, work) => {
        const mutex = mutexes.get(key) ?? new Mutex();
        mutexes.set(key, mutex);
        return mutex.runExclusive(work);
      },
      close: () => undefined,
    };
  },
};

type WithLock = Locker['withLock'];

function ioredisContestant(
  name: string,
  packageName: string,
  renewsLease: boolean,
  connectLibrary: (client: Redis, terms: Terms) => Promise<WithLock>,
): Contestant {
  return {
    name,
    packageName,
    renewsLease,
    connect: async (to, terms) => {
      const client = new Redis(urlOf(to));
      return { withLock: await connectLibrary(client, terms), close: () => client.disconnect() };
    },
  };
}

function redlockSettings(waitMs: number): RedlockSettings {
  return { retryCount: Math.ceil(waitMs / PAUSE_MS), retryDelay: PAUSE_MS, retryJitter: JITTER_MS };
}

interface RedlockSettings {
  readonly retryCount: number;
  readonly retryDelay: number;
  readonly retryJitter: number;
}

interface Redlock4 {
  default: new (
    clients: readonly Redis[],
    settings: RedlockSettings,
  ) => { lock(key: string, ttlMs: number): Promise<{ unlock(): Promise<void> }> };
}

interface Using {
  using(keys: readonly string[], ttlMs: number, work: () => Promise<void>): Promise<void>;
}

interface Redlock5 {
  default: new (clients: readonly Redis[], settings: RedlockSettings) => Using;
}

interface NestRedlock {
  RedlockService: new (options: { clients: readonly Redis[]; settings: RedlockSettings }) => Using;
}

interface RedisSemaphore {
  Mutex: new (
    client: Redis,
    key: string,
    options: { lockTimeout: number; acquireTimeout: number; retryInterval: number },
  ) => { acquire(): Promise<void>; release(): Promise<void> };
}

interface VerrouRedis {
  readonly redisStore: (options: { connection: Redis }) => { factory(): unknown };
}

interface Verrou {
  LockFactory: new (
    store: unknown,
    options: { retry: { delay: number; timeout: number } },
  ) => { createLock(key: string, ttlMs: number): { run(work: () => Promise<void>): Promise<[boolean, unknown]> } };
}

interface RedlockUniversal {
  IoredisAdapter: new (client: Redis) => unknown;
  readonly createLock: (options: {
    adapter: unknown;
    key: string;
    ttl: number;
    retryDelay: number;
    retryAttempts: number;
  }) => { using(work: () => Promise<void>): Promise<void> };
}

interface Murlock {
  MurLockModule: { forRoot(options: object): object };
  MurLockService: abstract new (...parameters: never) => {
    runWithLock(key: string, ttlMs: number, pauseMs: number, work: () => Promise<void>): Promise<void>;
  };
}

interface Nest {
  NestFactory: {
    createApplicationContext(
      module: object,
      options: { logger: false },
    ): Promise<{ get<T>(service: abstract new (...parameters: never) => T): T; close(): Promise<void> }>;
  };
}

interface AsyncMutex {
  Mutex: new () => { runExclusive(work: Work): Promise<void> };
}
