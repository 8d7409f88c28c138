import { inspect } from 'node:util';
import { Catch, type ExceptionFilter, Injectable } from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Args,
  Field,
  GraphQLModule,
  Mutation,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql';
import {
  DistributedLockModule,
  type DistributedLockExtras,
  Locked,
  LockKey,
  LockService,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { eventually } from '../support/eventually.js';
import { warningsDuring } from '../support/node-warnings.js';
import { application, listen } from '../nest/apps.js';

@Resolver()
class Sales {
  constructor(private readonly locks: LockService) {}

  @Query(() => String)
  hello(): string {
    return 'hello';
  }

  @Query(() => String)
  @Locked('price_:id')
  async price(@Args('id') id: string): Promise<string> {
    return id;
  }

  @Mutation(() => String)
  @Locked('sale_:id', { waitMs: 0 })
  async buy(@Args('id') id: string): Promise<string> {
    return `bought ${id}`;
  }

  @Mutation(() => String)
  @Locked('sale_:id')
  async waitFor(@Args('id') id: string): Promise<string> {
    return `bought ${id}`;
  }

  @Mutation(() => String)
  async own(@Args('id') id: string): Promise<string> {
    return this.locks.withLock(`sale_${id}`, () => `bought ${id}`, { waitMs: 0 });
  }
}

@Catch()
class CatchAll implements ExceptionFilter {
  catch(error: unknown): never {
    throw error;
  }
}

@ObjectType()
class Sale {
  @Field()
  id: string = '';
}

@Injectable()
class Stocks {
  @Locked('stock_:id', { waitMs: 0 })
  async of(@LockKey('id') id: string): Promise<number> {
    return id.length;
  }
}

@Resolver(() => Sale)
class SaleResolver {
  constructor(private readonly stocks: Stocks) {}

  @Query(() => Sale)
  sale(@Args('id') id: string): Sale {
    return { id };
  }

  @Locked('total_:id', { waitMs: 0 })
  @ResolveField(() => Number)
  async total(@Parent() { id }: Sale): Promise<number> {
    return id.length;
  }

  @ResolveField(() => Number)
  stock(@Parent() { id }: Sale): Promise<number> {
    return this.stocks.of(id);
  }
}

describe('a client of GraphQL', () => {
  async function start(filter?: ExceptionFilter, extras: DistributedLockExtras = {}, showsStacks = false) {
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      includeStacktraceInErrorResponses: showsStacks,
      playground: false,
    });
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter: true, ...extras });
    const app = await application({ imports: [module, graphql], providers: [Sales, SaleResolver, Stocks] });
    if (filter) app.useGlobalFilters(filter);
    const url = await listen(app);
    const ask = async (query: string, signal: AbortSignal | null = null): Promise<unknown[]> => {
      const response = await fetch(`${url}/graphql`, {
        method: 'POST',
        signal,
        body: JSON.stringify({ query }),
        headers: { 'content-type': 'application/json' },
      });
      return [response.status, await response.json()];
    };
    return { ask, locks: app.get(LockService), resolver: app.get(SaleResolver) };
  }

  const busy = (path: string): unknown => ({
    data: null,
    errors: [
      {
        message: 'Locked by another request, try again later',
        locations: expect.anything(),
        path: [path],
        extensions: { code: 'LOCK_TIMEOUT' },
      },
    ],
  });

  it('is told that a key is held, by @Locked and by a LockService', async () => {
    const { ask, locks } = await start();
    expect(await ask('mutation { buy(id: "a1") }')).toEqual([200, { data: { buy: 'bought a1' } }]);
    const held = await locks.acquire('sale_a1');
    expect(await ask('mutation { buy(id: "a1") }')).toEqual([200, busy('buy')]);
    expect(await ask('mutation { own(id: "a1") }')).toEqual([200, busy('own')]);
    await held.release();
  });

  it('is told what the request lacks', async () => {
    const { ask } = await start();
    expect(await ask('mutation { buy(id: "") }')).toEqual([
      200,
      {
        data: null,
        errors: [
          expect.objectContaining({
            message: 'What to lock is missing from the request, or invalid',
            extensions: { code: 'LOCK_CONFIGURATION' },
          }),
        ],
      },
    ]);
  });

  it('is told the same by a global filter that passes on what it catches', async () => {
    const { ask, locks } = await start(new CatchAll());
    const held = await locks.acquire('sale_a1');
    expect(await ask('mutation { buy(id: "a1") }')).toEqual([200, busy('buy')]);
    expect(await ask('mutation { own(id: "a1") }')).toEqual([200, busy('own')]);
    await held.release();
  });

  it('is told no key, host or process by a field that is busy', async () => {
    const { ask, locks, resolver } = await start();
    const held = await locks.acquire('total_a1');
    expect(await ask('{ sale(id: "a1") { total } }')).toEqual([
      200,
      {
        data: null,
        errors: [
          {
            message: 'Locked by another request, try again later',
            locations: expect.anything(),
            path: ['sale', 'total'],
            extensions: expect.objectContaining({ code: 'LOCK_TIMEOUT' }),
          },
        ],
      },
    ]);
    const told: unknown = await resolver.total({ id: 'a1' }).catch((error: unknown) => error);
    expect(told).toMatchObject({ code: 'LOCK_TIMEOUT', key: 'total_a1', holder: { pid: process.pid } });
    expect(inspect(told)).toMatch(/^LockTimeoutError: "total_a1" is held by/);
    await held.release();
  });

  it('is told no key, host or process by a field whose service is busy', async () => {
    const { ask, locks } = await start();
    expect(await ask('{ sale(id: "a1") { stock } }')).toEqual([200, { data: { sale: { stock: 2 } } }]);
    await using _held = await locks.acquire('stock_a1');
    const [, answer] = await ask('{ sale(id: "a1") { stock } }');
    expect(answer).toMatchObject({
      errors: [{ message: 'Locked by another request, try again later', extensions: { code: 'LOCK_TIMEOUT' } }],
    });
    expect(JSON.stringify(answer)).not.toMatch(/stock_a1|pid/u);
  });

  it('is told no key, host or process by the stack of a field, which Apollo shows outside of production', async () => {
    const { ask, locks } = await start(undefined, {}, true);
    const held = [await locks.acquire('stock_a1'), await locks.acquire('total_a1')];
    for (const field of ['stock', 'total']) {
      const answer = JSON.stringify(await ask(`{ sale(id: "a1") { ${field} } }`));
      expect(answer).toContain('"stacktrace":["LockTimeoutError: Locked by another request, try again later","    at ');
      expect(answer).not.toMatch(/(?:stock|total)_a1|pid/u);
    }
    for (const each of held) await each.release();
  });

  it('may ask for any number of locked fields, without a warning of Node', async () => {
    const { ask } = await start();
    const fields = Array.from({ length: 12 }, (_, i) => `p${i}: price(id: "${i}")`);
    const data = Object.fromEntries(fields.map((_, i) => [`p${i}`, String(i)]));
    const asking = async () => expect(await ask(`{ ${fields.join(' ')} }`)).toEqual([200, { data }]);
    expect(await warningsDuring(asking)).toEqual([]);
  });

  it('does not wait any longer once it has gone', async () => {
    const { ask, locks } = await start();
    const held = await locks.acquire('sale_a1');
    const leaving = new AbortController();
    const asked = ask('mutation { waitFor(id: "a1") }', leaving.signal).catch(() => 'gone');
    await eventually(() => locks.inspect()[0]?.waitersHere === 1);
    leaving.abort();
    expect(await asked).toBe('gone');
    await eventually(() => locks.inspect()[0]?.waitersHere === 0);
    await held.release();
  });
});
