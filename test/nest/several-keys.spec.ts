import { Injectable } from '@nestjs/common';
import {
  currentLocks,
  DistributedLockModule,
  getLockServiceToken,
  LockBackend,
  Locked,
  type LockedOptions,
  LockService,
  type Share,
} from 'nestjs-distributed-lock';
import { memory, MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { storeLike } from '../core/store-like.js';
import { context } from './apps.js';

type Taken = readonly (readonly [string, Share | undefined])[];

/** What the call of a method with these arguments has. */
const taken = (..._args: readonly string[]): Taken => currentLocks().map(({ key, share }) => [key, share] as const);

@Injectable()
class Documents {
  @Locked([{ key: 'doc_:from', mode: 'shared' }, 'doc_:to'])
  async copy(from: string, to: string): Promise<Taken> {
    return taken(from, to);
  }

  @Locked((id: string) => [
    { key: 'printers', limit: 3 },
    { key: `doc_${id}`, mode: 'shared' },
  ])
  async print(_id: string): Promise<Taken> {
    return taken();
  }

  @Locked(['doc_:from', 'doc_:to'], { mode: 'shared' })
  async compare(from: string, to: string): Promise<Taken> {
    return taken(from, to);
  }
}

function decorate(keys: unknown, options?: LockedOptions): () => void {
  return () => {
    class Sale {
      @Locked(keys as [string], options)
      async sell(id: string): Promise<string> {
        return id;
      }
    }
    return new Sale();
  };
}

const SHARED = { mode: 'shared' } as const;

describe('several keys of @Locked', () => {
  let app: Awaited<ReturnType<typeof context>>;
  let documents: Documents;
  beforeEach(async () => {
    app = await context({ imports: [DistributedLockModule.forRoot(memory())], providers: [Documents] });
    documents = app.get(Documents);
  });
  afterEach(() => app.close());

  it('are taken each with its own claim', async () => {
    await using lock = await app.get<LockService>(getLockServiceToken()).acquire('doc_2', SHARED);
    expect(lock.isHeld).toBe(true);
    await expect(documents.copy('2', '1')).resolves.toEqual([
      ['doc_2', SHARED],
      ['doc_1', undefined],
    ]);
    await expect(documents.print('2')).resolves.toEqual([
      ['printers', { mode: 'permits', permits: 1, limit: 3 }],
      ['doc_2', SHARED],
    ]);
    await expect(documents.compare('1', '2')).resolves.toEqual([
      ['doc_2', SHARED],
      ['doc_1', SHARED],
    ]);
  });

  it('that are one are taken once, with the stronger claim', async () => {
    await expect(documents.copy('1', '1')).resolves.toEqual([['doc_1', undefined]]);
    await expect(documents.compare('1', '1')).resolves.toEqual([['doc_1', SHARED]]);
  });

  it.each([
    [[{ key: 'doc_:id', mode: 'shred' }], 'mode must be one of exclusive, shared; it was "shred"'],
    [['a', { key: 'b', permits: 2 }], 'permits needs a limit'],
    [[{ key: 'b', ttlMs: 2 }], 'ttlMs is no key option; there are key, mode, limit, permits'],
    [[{ mode: 'shared' }], 'must be a string'],
    [[7], 'must be a string'],
    [
      [
        { key: 'a', mode: 'shared' },
        { key: 'a', limit: 2 },
      ],
      '"a" is wanted shared and with 1 of 2 permits',
    ],
  ])('are refused when the class is made: %j', (keys, why) => {
    expect(decorate(keys)).toThrow(why);
  });

  it('are refused when the application starts, where the backend cannot keep their claims', async () => {
    @Injectable()
    class Calls {
      @Locked(['a', { key: 'b', limit: 6 }])
      async call(): Promise<void> {}
    }
    expect(() => new Calls()).not.toThrow();
    const few = DistributedLockModule.forRoot(
      () => new LockBackend(storeLike(new MemoryLeaseStore(), { name: 'few', traits: { maxPermits: 5 } })),
    );
    await expect(context({ imports: [few], providers: [Calls] })).rejects.toThrow('limit must be');
  });
});
