import { Injectable, type OnModuleDestroy, type Provider, Scope } from '@nestjs/common';
import {
  DistributedLockModule,
  Leads,
  Locked,
  LockConfigurationError,
  type LockHandle,
  LockService,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { LeadsExplorer } from '../../lib/nest/leads/leads.explorer.js';
import { atLeastMs, eventually } from '../support/index.js';
import { context } from './apps.js';

/** Until its term ends. */
function told({ signal }: LockHandle): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()));
}

it('the end of an explorer that was never constructed is nothing', async () => {
  const unmade: LeadsExplorer = Object.create(LeadsExplorer.prototype);
  await expect(unmade.onModuleDestroy()).resolves.toBeUndefined();
});

describe('@Leads', () => {
  const starting = (...providers: Provider[]) =>
    context({ imports: [DistributedLockModule.forRoot({ backend: memory(), logger: false })], providers });

  it('leads from the bootstrap to the shutdown, and ends before what its work needs', async () => {
    const notes: string[] = [];
    @Injectable()
    class Connection implements OnModuleDestroy {
      onModuleDestroy(): void {
        notes.push('disconnected');
      }
    }
    @Injectable()
    class Reindexer {
      readonly name = 'reindexer';

      constructor(readonly connection: Connection) {}

      @Leads('reindexer')
      async lead(term: LockHandle): Promise<void> {
        notes.push(`${this.name} leads as ${term.key}`);
        await told(term);
        notes.push(term.isHeld ? 'ended under the lock' : 'ended too late');
      }
    }
    const app = await starting(Connection, Reindexer);
    const leadership = app.get(LockService).leadership('reindexer');
    await eventually(() => leadership?.isLeader === true);
    await app.close();
    expect(notes).toEqual(['reindexer leads as reindexer', 'ended under the lock', 'disconnected']);
    expect(leadership?.isLeader).toBe(false);
  });

  it('one of two applications leads, and the other one when that ends', async () => {
    const leaders: number[] = [];
    const backend = memory();
    const app = (place: number) => {
      class Chief {
        @Leads({ key: 'jobs\\:chief', backend: 'quick', ttlMs: atLeastMs(1_000) })
        async lead(term: LockHandle): Promise<void> {
          leaders.push(place);
          await told(term);
        }
      }
      const backends = { default: memory(), quick: backend };
      // A factory's instance gets no properties from Nest.
      const providers = [{ provide: 'chief', useFactory: () => new Chief() }];
      return context({ imports: [DistributedLockModule.forRoot({ backends, logger: false })], providers });
    };
    const first = await app(1);
    await eventually(() => leaders.length === 1);
    const second = await app(2);
    await first.close();
    await eventually(() => leaders.length === 2);
    await second.close();
    expect(leaders).toEqual([1, 2]);
  });

  const refusals: [title: string, make: () => Provider, message: string | RegExp][] = [
    [
      'a provider of a request',
      () => {
        @Injectable({ scope: Scope.REQUEST })
        class PerRequest {
          @Leads('k')
          lead(): void {}
        }
        return PerRequest;
      },
      '@Leads PerRequest.lead needs a provider that exists once',
    ],
    [
      'a transient provider',
      () => {
        @Injectable({ scope: Scope.TRANSIENT })
        class Many {
          @Leads('k')
          lead(): void {}
        }
        return Many;
      },
      '@Leads Many.lead needs a provider that exists once',
    ],
    [
      '@Locked on the same method',
      () => {
        class Both {
          @Leads('k')
          @Locked('k')
          async lead(): Promise<void> {}
        }
        return Both;
      },
      '@Leads Both.lead has @Locked, too',
    ],
    [
      'a backend that is not there',
      () => {
        class Elsewhere {
          @Leads({ key: 'k', backend: 'ledger' })
          lead(): void {}
        }
        return Elsewhere;
      },
      /LockService of @Leads Elsewhere\.lead, of the backend ledger/u,
    ],
    [
      'one office twice',
      () => {
        class Twice {
          @Leads('k')
          one(): void {}
          @Leads('k')
          two(): void {}
        }
        return Twice;
      },
      'this service stands for "k" already',
    ],
    [
      'an option that can never work',
      () => {
        class Brief {
          @Leads({ key: 'k', ttlMs: 0 })
          lead(): void {}
        }
        return Brief;
      },
      'ttlMs must be',
    ],
    ['an empty key', () => leading(''), 'a lock key must not be empty'],
    ['a key with a placeholder', () => leading('k_:id'), 'has placeholders'],
    ['a key that is no text', () => leading(undefined), 'must be a string'],
  ];

  it.each(refusals)('refuses %s at the start', async (_, make, message) => {
    const start = async () => starting(make());
    await expect(start()).rejects.toThrow(message);
  });

  it('refuses a static method', () => {
    const decorate = () => {
      class Nobody {
        readonly own = true;

        @Leads('k')
        static lead(): void {}
      }
      return Nobody;
    };
    expect(decorate).toThrow(LockConfigurationError);
  });
});

function leading(key: unknown): Provider {
  class Chief {
    @Leads(key as string)
    lead(): void {}
  }
  return Chief;
}
