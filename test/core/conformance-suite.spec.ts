import { AssertionError } from 'node:assert';
import { leaseStorePromises } from 'nestjs-distributed-lock/conformance';
import type { HolderMetadata, LeaseAttempt, LeaseState } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { atLeastMs } from '../support/machine.js';

type Acquire = [key: string, owner: string, ttlMs: number, metadata: HolderMetadata];
type Adopt = Parameters<MemoryLeaseStore['adopt']>;

/** Knows who has a key, as those below must not. */
class KnownOwners extends MemoryLeaseStore {
  readonly owners = new Map<string, string>();

  override async tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
    const attempt = await super.tryAcquire(...asked);
    if (attempt.acquired) this.owners.set(asked[0], asked[1]);
    return attempt;
  }
}

const granted = async (attempt: Promise<LeaseAttempt>, change: object): Promise<LeaseAttempt> => {
  const answer = await attempt;
  return answer.acquired ? { ...answer, ...change } : answer;
};

/** Stores with one mistake each, and the promise that it breaks. */
const MISTAKEN: readonly (readonly [promise: string, store: typeof MemoryLeaseStore])[] = [
  [
    'grants a key to one of fifty who ask at the same time, over five clients',
    class LooksBeforeItWrites extends MemoryLeaseStore {
      override async tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        const [key] = asked;
        const free = !this.held().includes(key);
        await new Promise((resolve) => void setImmediate(resolve));
        if (free) this.revoke(key);
        return super.tryAcquire(...asked);
      }
    },
  ],
  [
    'grants a free key, with a token from 1 to below 2^52',
    class CountsFromTheTopOfItsColumn extends MemoryLeaseStore {
      override tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        return granted(super.tryAcquire(...asked), { fencingToken: 2n ** 63n - 1n });
      }
    },
  ],
  [
    'gives every acquisition a greater token, whichever client asks',
    class RaisesNoToken extends MemoryLeaseStore {
      override tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        return granted(super.tryAcquire(...asked), { fencingToken: 1n });
      }
    },
  ],
  [
    'grants the key again to the owner who has it, with a full time to live and no lesser token',
    class RefusesItsOwner extends KnownOwners {
      override async tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        if (this.owners.get(asked[0]) === asked[1]) return { acquired: false, retryAfterMs: null };
        return super.tryAcquire(...asked);
      }
    },
  ],
  [
    'grants the key again to the owner who has it, with a full time to live and no lesser token',
    class GrantsNoMoreTime extends KnownOwners {
      override async tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        if (this.owners.get(asked[0]) === asked[1]) return { acquired: true, fencingToken: 2n ** 51n };
        return super.tryAcquire(...asked);
      }
    },
  ],
  [
    'keeps a key for its time to live, frees it when its holder is gone, and raises the token',
    class EndsLeasesEarly extends MemoryLeaseStore {
      override tryAcquire(...[key, owner, ttlMs, metadata]: Acquire): Promise<LeaseAttempt> {
        return super.tryAcquire(key, owner, ttlMs / 2, metadata);
      }
    },
  ],
  [
    'prolongs a lease by renewals',
    class RenewsInWordsOnly extends MemoryLeaseStore {
      override renew(key: string, owner: string): Promise<boolean> {
        return this.isHeldBy(key, owner);
      }
    },
  ],
  [
    'renews nothing that was released, or was never there',
    class RenewsByAcquiring extends MemoryLeaseStore {
      override async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
        return (await this.tryAcquire(key, owner, ttlMs, { host: '', pid: 0 })).acquired;
      }
    },
  ],
  [
    'renews for nobody but the owner',
    class RenewsByKey extends KnownOwners {
      override async renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
        return super.renew(key, this.owners.get(key) ?? owner, ttlMs);
      }
    },
  ],
  [
    'tells whether an owner has a key, where it can tell, and changes nothing by that',
    class TellsOfKeys extends MemoryLeaseStore {
      override async isHeldBy(key: string): Promise<boolean> {
        return this.held().includes(key);
      }
    },
  ],
  [
    'tells who has a key, where it can tell, and changes nothing by that',
    class SeesNobody extends MemoryLeaseStore {
      override async look(): Promise<LeaseState> {
        return {};
      }
    },
  ],
  [
    'evicts the owner that it is told, where it can evict, and no other',
    class EvictsWhoeverIsThere extends MemoryLeaseStore {
      override async evict(key: string): Promise<boolean> {
        this.revoke(key);
        return true;
      }
    },
  ],
  [
    'lists the keys that are held, where it can list',
    class ListsAll extends MemoryLeaseStore {
      override async *keys(): AsyncGenerator<readonly string[]> {
        yield this.held();
      }
    },
  ],
  [
    'changes nothing when a stranger releases, and says false',
    class ReleasesByKey extends KnownOwners {
      override async release(key: string, owner: string): Promise<boolean> {
        return super.release(key, this.owners.get(key) ?? owner);
      }
    },
  ],
  [
    'frees a key for every client as soon as its release is answered',
    class ReleasesLater extends MemoryLeaseStore {
      override async release(key: string, owner: string): Promise<boolean> {
        setTimeout(() => void super.release(key, owner), 20);
        return this.isHeldBy(key, owner);
      }
    },
  ],
  [
    'keeps keys apart that differ in a blank, a letter case or a Unicode form, and takes any text',
    class ComparesAsPeopleDo extends MemoryLeaseStore {
      override tryAcquire(...[key, ...rest]: Acquire): Promise<LeaseAttempt> {
        return super.tryAcquire(key.normalize().trimEnd(), ...rest);
      }
    },
  ],
  [
    'takes keys of up to 4,096 bytes, and keeps those apart that differ in the last',
    class HasAColumnOf255 extends MemoryLeaseStore {
      override tryAcquire(...[key, ...rest]: Acquire): Promise<LeaseAttempt> {
        return super.tryAcquire(key.slice(0, 255), ...rest);
      }
    },
  ],
  [
    'calls nobody whose watch has ended, and passes such an owner over',
    class WakesForEver extends MemoryLeaseStore {
      readonly #watched: (() => void)[] = [];

      override watch(key: string, owner: string, wake: () => void): () => void {
        this.#watched.push(wake);
        return super.watch(key, owner, wake);
      }

      override async release(key: string, owner: string): Promise<boolean> {
        for (const wake of this.#watched) wake();
        return super.release(key, owner);
      }
    },
  ],
  [
    'wakes who watches a key when it is released just after its lease has ended',
    class WakesNobodyLate extends MemoryLeaseStore {
      override async release(key: string, owner: string): Promise<boolean> {
        return (await this.isHeldBy(key, owner)) && super.release(key, owner);
      }
    },
  ],
  [
    'grants nothing by a watch alone',
    class WatchesByAcquiring extends MemoryLeaseStore {
      override watch(key: string, owner: string, wake: () => void): () => void {
        const unwatch = super.watch(key, owner, wake);
        void this.tryAcquire(key, owner, 60_000, { host: '', pid: 0 });
        return unwatch;
      }
    },
  ],
  [
    'passes a key to one of several adopters, with its token, and ends the former lease',
    class KeepsTheFormerOwner extends MemoryLeaseStore {
      override async adopt(...[key, { owner, fencingToken }]: Adopt): Promise<LeaseAttempt> {
        const isHeld = await this.isHeldBy(key, owner);
        return isHeld ? { acquired: true, fencingToken } : { acquired: false, retryAfterMs: null };
      }
    },
  ],
  [
    'grants an adopter nothing when the former owner has lost the key',
    class AcquiresForAnAdopter extends MemoryLeaseStore {
      override async adopt(...asked: Adopt): Promise<LeaseAttempt> {
        const [key, , { owner, ttlMs, metadata }] = asked;
        const attempt = await super.adopt(...asked);
        return attempt.acquired ? attempt : super.tryAcquire(key, owner, ttlMs, metadata);
      }
    },
  ],
  [
    'closes as often as it is told, and leaves other clients alone',
    class ClosesTheServer extends MemoryLeaseStore {
      override async close(): Promise<void> {
        for (const key of this.held()) this.revoke(key);
      }
    },
  ],
  [
    'tells a holder that cannot renew of its loss before it lets the next one in',
    class PromisesMoreTime extends MemoryLeaseStore {
      override tryAcquire(...asked: Acquire): Promise<LeaseAttempt> {
        return granted(super.tryAcquire(...asked), { ttlMs: asked[2] * 3 });
      }
    },
  ],
];

describe('the conformance suite finds each mistake', () => {
  it.each(MISTAKEN)('%s: %p', async (promise, Store) => {
    const world = new Store();
    const promises = leaseStorePromises({ connect: () => world, shortTtlMs: atLeastMs(200) });
    const broken = promises.find(({ name }) => name === promise);
    await expect(broken?.check()).rejects.toThrow(AssertionError);
  });
});

it('names every promise once, and those of a harness that can do more only with it', () => {
  const harness = { connect: () => new MemoryLeaseStore(), shortTtlMs: 100 };
  const common = leaseStorePromises(harness);
  const all = leaseStorePromises({ ...harness, revoke: () => undefined, freeze: () => () => undefined });
  expect(all.length).toBeGreaterThan(common.length);
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});
