import { Injectable, Module, type ModuleMetadata, Scope, type Type } from '@nestjs/common';
import { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { Leads, Locked, type LockHandle, LockService } from 'nestjs-distributed-lock';
import { exploreLazyModules } from '../../lib/nest/lifecycle/lazy-modules.js';
import { eventually } from '../support/eventually.js';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

function moduleOf(metadata: ModuleMetadata): Type {
  @Module(metadata)
  class LateModule {}
  return LateModule;
}

@Injectable()
class Sale {
  @Locked('sale_:id')
  async sell(id: string): Promise<string> {
    return id;
  }
}

describe('a module that is loaded later', () => {
  it.each([
    [
      'overrides a locked method without a lock',
      () => {
        @Injectable()
        class Quick extends Sale {
          override async sell(id: string): Promise<string> {
            return id;
          }
        }
        return moduleOf({ providers: [Quick] });
      },
      'Quick.sell overrides Sale.sell',
    ],
    [
      'has a key that can never be resolved, in a module that it imports',
      () => {
        @Injectable()
        class Broken {
          @Locked('sale_:nowhere')
          async sell(id: string): Promise<string> {
            return id;
          }
        }
        return moduleOf({ imports: [moduleOf({ providers: [Broken] })] });
      },
      ':nowhere',
    ],
    [
      'leads by what is made for each consumer',
      () => {
        @Injectable({ scope: Scope.TRANSIENT })
        class Leader {
          @Leads('leader')
          async lead(): Promise<void> {}
        }
        @Injectable()
        class Consumer {
          constructor(readonly leader: Leader) {}
        }
        return moduleOf({ providers: [Leader, Consumer] });
      },
      'needs a provider that exists once',
    ],
  ])('is refused at each load where it %s', async (_what, late, refusal) => {
    const loader = (await providing(new Crossing())).get(LazyModuleLoader);
    const module = late();
    await expect(loader.load(() => module)).rejects.toThrow(refusal);
    await expect(loader.load(() => module)).rejects.toThrow(refusal);
  });

  it('is explored again by a further load where the first one failed', async () => {
    const app = await providing(new Crossing());
    const loader = app.get(LazyModuleLoader);
    const module = moduleOf({ providers: [Sale] });
    const asked: unknown[] = [];
    class Failing {
      async explore(): Promise<void> {
        if (asked.push(module) === 1) throw new Error('no database yet');
      }
    }
    exploreLazyModules(loader, app.get(ModulesContainer), new Failing());
    await expect(loader.load(() => module)).rejects.toThrow('no database yet');
    await loader.load(() => module);
    await loader.load(() => module);
    expect(asked).toHaveLength(2);
  });

  it('gives the service to what its factories make', async () => {
    const crossing = new Crossing();
    const app = await providing(crossing);
    const module = moduleOf({ providers: [{ provide: 'SALE', useFactory: () => new Sale() }] });
    const loaded = await app.get(LazyModuleLoader).load(() => module);
    await loaded.get<Sale>('SALE').sell('1');
    expect(crossing.keys).toEqual(['sale_1']);
  });

  it('leads from its load to the shutdown, once, however often it is loaded', async () => {
    const terms: LockHandle[] = [];
    @Injectable()
    class Leader {
      @Leads('leader')
      async lead(term: LockHandle): Promise<void> {
        terms.push(term);
        await new Promise<void>((resolve) => term.signal.addEventListener('abort', () => resolve()));
      }
    }
    const app = await providing(new Crossing());
    const loader = app.get(LazyModuleLoader);
    const module = moduleOf({ providers: [Leader] });
    await Promise.all([loader.load(() => module), loader.load(() => module)]);
    await loader.load(() => module);
    await eventually(() => app.get(LockService).leadership('leader')?.isLeader === true);
    await app.close();
    expect(terms.map(({ isHeld }) => isHeld)).toEqual([false]);
  });
});
