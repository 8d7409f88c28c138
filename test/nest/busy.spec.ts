import { Injectable } from '@nestjs/common';
import {
  DistributedLockModule,
  Locked,
  LockBackendError,
  LockService,
  LockTimeoutError,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { context, providing } from './apps.js';
import { Crossing } from './crossing.js';

describe('onBusy', () => {
  @Injectable()
  class Jobs {
    runs = 0;
    @Locked('job', { waitMs: 0 })
    async throws(): Promise<string> {
      return this.#run();
    }
    @Locked('job', { onBusy: 'skip' })
    async skips(): Promise<string | undefined> {
      return this.#run();
    }
    @Locked('job', { waitMs: 0, onBusy: ({ args, error }) => `${String(args[0])}: ${error.key}` })
    async answers(_who: string): Promise<string> {
      return this.#run();
    }
    @Locked('outer', { onBusy: 'skip' })
    async nested(): Promise<string | undefined> {
      return this.throws();
    }
    @Locked('other', { onBusy: () => 'instead' })
    async fails(error: Error): Promise<string> {
      throw error;
    }
    async #run(): Promise<string> {
      this.runs += 1;
      return 'done';
    }
  }

  it('throws, skips or answers when the key is held, and runs the method otherwise', async () => {
    const app = await providing(new Crossing(), Jobs);
    const jobs = app.get(Jobs);
    const held = await app.get(LockService).acquire('job');
    await expect(jobs.throws()).rejects.toBeInstanceOf(LockTimeoutError);
    expect(await jobs.skips()).toBeUndefined();
    expect(await jobs.answers('me')).toBe('me: job');
    await held.release();
    expect(await Promise.all([jobs.throws(), jobs.skips()])).toEqual(['done', undefined]);
    expect(await jobs.answers('me')).toBe('done');
    expect(jobs.runs).toBe(2);
  });

  it('is not asked about what the method throws, be it a time-out of its own', async () => {
    const app = await providing(new Crossing(), Jobs);
    const jobs = app.get(Jobs);
    const held = await app.get(LockService).acquire('job');
    await expect(jobs.nested()).rejects.toBeInstanceOf(LockTimeoutError);
    await held.release();
    const error = new LockTimeoutError('elsewhere', { waitMs: 0 });
    await expect(jobs.fails(error)).rejects.toBe(error);
  });

  it('is not asked when the backend is down', async () => {
    const backend = memory()();
    backend.acquire = () => Promise.reject(new Error('gone'));
    const app = await context({ imports: [DistributedLockModule.forRoot(backend)], providers: [Jobs] });
    await expect(app.get(Jobs).skips()).rejects.toBeInstanceOf(LockBackendError);
  });
});

describe('several keys', () => {
  @Injectable()
  class Accounts {
    readonly crossing = new Crossing();
    @Locked(['account_:to', 'account_:from', 'log'])
    transfer(from: string, to: string): Promise<string> {
      return this.crossing.cross(`${from} ${to}`);
    }
    @Locked(['account_:to', 'account_:from', 'log'], { waitMs: 50 })
    async transferSoon(from: string, to: string): Promise<string> {
      return `${from} ${to}`;
    }
    @Locked((...names: string[]) => names, { waitMs: 0 })
    async all(..._names: string[]): Promise<string> {
      return 'all';
    }
  }

  it('are taken sorted, each once, and given back', async () => {
    const crossing = new Crossing();
    const app = await providing(crossing, Accounts);
    const accounts = app.get(Accounts);
    expect(await accounts.transfer('b', 'a')).toBe('b a');
    expect(await accounts.transfer('a', 'a')).toBe('a a');
    expect(crossing.keys).toEqual(['account_a', 'account_b', 'log', 'account_a', 'log']);
    expect(app.get(LockService).inspect()).toEqual([]);
  });

  it('never wait for each other in a circle', async () => {
    const app = await providing(new Crossing(), Accounts);
    const accounts = app.get(Accounts);
    const calls = Array.from({ length: 40 }, (_, index) =>
      index % 2 ? accounts.transfer('a', 'b') : accounts.transfer('b', 'a'),
    );
    expect(await Promise.all(calls)).toHaveLength(40);
    expect(accounts.crossing.most).toBe(1);
  });

  it('are all taken or none', async () => {
    const crossing = new Crossing();
    const app = await providing(crossing, Accounts);
    const service = app.get(LockService);
    const held = await service.acquire('log');
    await expect(app.get(Accounts).transferSoon('x', 'y')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', key: 'log' });
    expect(service.inspect().map(({ key }) => key)).toEqual(['log']);
    await held.release();
  });

  it('from a function are checked one by one', async () => {
    const app = await providing(new Crossing(), Accounts);
    const accounts = app.get(Accounts);
    expect(await accounts.all('b', 'a', 'b')).toBe('all');
    await expect(accounts.all()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' });
    await expect(accounts.all('a', '')).rejects.toThrow('must not be empty');
    await expect(accounts.all('a', { toString: () => 'b' } as never)).rejects.toThrow('must be a string');
    await expect(accounts.all('\udc00')).rejects.toThrow('lone surrogate');
  });
});
