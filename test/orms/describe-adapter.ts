import { LockConfigurationError, LockTimeoutError, StaleFenceError } from 'nestjs-distributed-lock/core';
import { fence, lockIn } from 'nestjs-distributed-lock/sql';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DatabaseName, DATABASES, OTHER_FENCES, startDatabase, type TestDatabase } from './databases.js';
import type { Client, Work } from './orm-client.js';
import { endAfterEach } from '../support/after-each.js';
import { timeLimitOf } from '../support/machine.js';

/** A client whose transaction can be told apart once it is over. */
export interface AdapterOptions {
  readonly databases?: readonly DatabaseName[];
  readonly knowsItsEnd?: boolean;
}

const LARGEST_TOKEN = 2n ** 63n - 1n;
const ODD_NAMES = [
  `it's "quoted" \`thus\``,
  'a ? ?? \\? :b $1 $$ $$2 @c',
  'back\\slash \\\\ \\0 \\n',
  'nul\0nul',
  '🔒 ключ',
  'ä'.repeat(600),
  `${'?'.repeat(300)}${'$1'.repeat(150)}`,
];

/** The promises of an adapter on each database. */
export function describeAdapter(
  name: string,
  open: (database: DatabaseName, url: string) => Promise<Client>,
  { databases = DATABASES, knowsItsEnd = true }: AdapterOptions = {},
): void {
  for (const database of databases) describe(`${name}, ${database}`, () => describeOn(database, open, knowsItsEnd));
}

function describeOn(
  name: DatabaseName,
  open: (database: DatabaseName, url: string) => Promise<Client>,
  knowsItsEnd: boolean,
): void {
  let database: TestDatabase;
  let client: Client;
  const keep = endAfterEach((begun: Begun) => begun.rollback());
  let count = 0;
  const newKey = (): string => `key ${(count += 1)}`;

  beforeAll(async () => {
    database = await startDatabase(name);
    client = await open(name, database.url);
  });
  afterAll(async () => {
    await client.end();
    await database.stop();
  });

  const begin = async (): Promise<Begun> => keep(await beginOn(client));
  const write = (resource: string, fencingToken: bigint, note: string = resource): Promise<void> =>
    client.transaction(async ({ tx, write: insert }) => {
      await fence(tx, resource, { fencingToken });
      await insert(note);
    });

  describe('fence', () => {
    it('lets the newest holder write, and nothing of a former one stays', async () => {
      const key = newKey();
      await write(key, 7n, `${key} by 7`);
      await write(key, 7n, `${key} by 7 again`);
      const late = client.transaction(async ({ tx, write: insert }) => {
        await insert(`${key} before`);
        await fence(tx, key, { fencingToken: 6n });
      });
      await expect(late).rejects.toThrow(StaleFenceError);
      await expect(write(key, 6n, `${key} after`)).rejects.toMatchObject({ token: 6n, newest: 7n });
      await write(key, 8n, `${key} by 8`);
      const kept = (await database.notes()).filter((note) => note.startsWith(`${key} `));
      expect(kept).toEqual([`${key} by 7`, `${key} by 7 again`, `${key} by 8`]);
    });

    it('makes the second of two transactions wait for the first', async () => {
      const key = newKey();
      const [first, second] = [await begin(), await begin()];
      await fence(first.tx, key, { fencingToken: 2n });
      const fenced = fence(second.tx, key, { fencingToken: 1n });
      await expect(stateAfter(200, fenced)).resolves.toBe('pending');
      await first.commit();
      await expect(fenced).rejects.toMatchObject({ token: 1n, newest: 2n });
    });

    it('lets the second one read what the first has written', async () => {
      const key = newKey();
      await write(key, 1n);
      const [first, second] = [await begin(), await begin()];
      await fence(first.tx, key, { fencingToken: 2n });
      await first.write(`${key} by 2`);
      const fenced = fence(second.tx, key, { fencingToken: 3n });
      await expect(stateAfter(200, fenced)).resolves.toBe('pending');
      await first.commit();
      await fenced;
      await expect(second.read()).resolves.toContain(`${key} by 2`);
    });

    it('takes a former one again after a rollback', async () => {
      const key = newKey();
      const begun = await begin();
      await fence(begun.tx, key, { fencingToken: 9n });
      await begun.rollback();
      await write(key, 3n);
    });

    it('does not refuse those who share a key, but for one who had it alone since', async () => {
      const key = newKey();
      const read = (fencingToken: bigint): Promise<void> =>
        client.transaction(({ tx }) => fence(tx, key, { fencingToken, share: { mode: 'shared' } }));
      await read(5n);
      await read(4n);
      await write(key, 6n);
      await read(7n);
      await expect(read(5n)).rejects.toThrow(StaleFenceError);
    });

    it('takes any name, and the largest tokens', async () => {
      for (const odd of ODD_NAMES) {
        const note = newKey();
        await write(odd, 0n, `${note} 0`);
        await write(odd, 2n ** 53n + 1n, `${note} 1`);
        await expect(write(odd, 2n ** 53n, note)).rejects.toMatchObject({ newest: 2n ** 53n + 1n });
        await write(odd, LARGEST_TOKEN, `${note} 2`);
        await expect(write(odd, LARGEST_TOKEN - 1n, note)).rejects.toMatchObject({ newest: LARGEST_TOKEN });
      }
    });
  });

  it('takes the name of a table that looks like a placeholder', async () => {
    const key = newKey();
    const table = { tableName: OTHER_FENCES };
    await client.transaction(({ tx }) => fence(tx, key, { fencingToken: 2n }, table));
    const late = client.transaction(({ tx }) => fence(tx, key, { fencingToken: 1n }, table));
    await expect(late).rejects.toThrow(StaleFenceError);
    await client.transaction(({ tx }) => lockIn(tx, key, table));
    await write(key, 1n);
  });

  it('works in a transaction within a transaction', async () => {
    const key = newKey();
    await client.transaction(async ({ tx, nest }) => {
      await fence(tx, key, { fencingToken: 1n });
      await nest?.(async (inner) => {
        await fence(inner.tx, key, { fencingToken: 2n });
        await lockIn(inner.tx, `${key} in`);
        await inner.write(key);
      });
      await fence(tx, key, { fencingToken: 2n });
    });
    await expect(write(key, 1n, 'late')).rejects.toThrow(StaleFenceError);
  });

  it('is refused outside of a transaction', async () => {
    const key = newKey();
    await expect(fence(client.outside(), key, { fencingToken: 5n })).rejects.toThrow(LockConfigurationError);
    await expect(lockIn(client.outside(), key)).rejects.toThrow(LockConfigurationError);
    await write(key, 1n);
  });

  it('is refused once the transaction is over', async () => {
    const key = newKey();
    const [committed, undone] = [await begin(), await begin()];
    await committed.commit();
    await undone.rollback();
    for (const { tx } of knowsItsEnd ? [committed, undone] : []) {
      await expect(fence(tx, key, { fencingToken: 5n })).rejects.toThrow();
      await expect(lockIn(tx, key)).rejects.toThrow();
      await write(key, 1n, newKey());
    }
  });

  describe('lockIn', () => {
    it('waits for the commit of another transaction, has the key then, and reads what that one wrote', async () => {
      for (const key of [newKey(), ...ODD_NAMES.slice(0, 4)]) {
        const [first, second, note] = [await begin(), await begin(), newKey()];
        await lockIn(first.tx, key);
        await first.write(note);
        const locked = lockIn(second.tx, key);
        await expect(stateAfter(100, locked)).resolves.toBe('pending');
        await first.commit();
        await locked;
        await expect(second.read()).resolves.toContain(note);
        await second.commit();
      }
    });

    it('does not wait with waitMs 0, and the transaction goes on', async () => {
      const key = newKey();
      for (const waitMs of [0, 200]) {
        const [first, second, note] = [await begin(), await begin(), newKey()];
        await lockIn(first.tx, key);
        await second.write(`${note} before`);
        const since = performance.now();
        await expect(lockIn(second.tx, key, { waitMs })).rejects.toThrow(LockTimeoutError);
        const waitedMs = performance.now() - since;
        expect(waitedMs).toTakeLessThan(limitOf(name, waitMs) + timeLimitOf(800));
        expect(waitedMs).toBeGreaterThanOrEqual(waitMs * 0.9);
        await lockIn(second.tx, `${key} another`, { waitMs });
        await second.write(`${note} after`);
        await second.commit();
        await first.commit();
        expect(await database.notes()).toEqual(expect.arrayContaining([`${note} before`, `${note} after`]));
      }
    });

    it('gets the key within waitMs when the first one commits', async () => {
      const key = newKey();
      const [first, second] = [await begin(), await begin()];
      await lockIn(first.tx, key);
      const locked = lockIn(second.tx, key, { waitMs: 10_000 });
      await expect(stateAfter(200, locked)).resolves.toBe('pending');
      await first.commit();
      await locked;
      const third = await begin();
      await expect(lockIn(third.tx, key, { waitMs: 0 })).rejects.toThrow(LockTimeoutError);
    });

    it('is free again after a rollback', async () => {
      const key = newKey();
      const [first, second] = [await begin(), await begin()];
      await lockIn(first.tx, key);
      await first.rollback();
      await lockIn(second.tx, key, { waitMs: 0 });
    });

    if (name === 'postgres') {
      it('says what to change where reads would show the past', async () => {
        const late = client.transaction(({ tx }) => lockIn(tx, newKey()), { repeatableRead: true });
        await expect(late).rejects.toThrow(LockConfigurationError);
        await expect(late).rejects.toThrow(/READ COMMITTED.*REPEATABLE READ/u);
      });
    }
  });
}

/** MySQL and MariaDB count whole seconds, and MySQL waits for one at least. */
function limitOf(name: DatabaseName, waitMs: number): number {
  if (name === 'postgres') return waitMs;
  return Math.max(name === 'mysql' ? 1_000 : 0, Math.ceil(waitMs / 1_000) * 1_000);
}

interface Begun extends Work {
  commit(): Promise<void>;
  /** Does nothing after the end. */
  rollback(): Promise<void>;
}

/** Holds a transaction open until the test ends it: these clients want a function. */
async function beginOn(client: Client): Promise<Begun> {
  const undone = new Error('undone');
  return new Promise((resolve, reject) => {
    const over: Promise<void> = client.transaction(
      (work) =>
        new Promise((commit, rollback) => {
          resolve({
            ...work,
            commit: () => {
              commit();
              return over;
            },
            rollback: async () => {
              rollback(undone);
              await over.catch(() => undefined);
            },
          });
        }),
    );
    over.catch(reject);
  });
}

async function stateAfter(ms: number, promise: Promise<unknown>): Promise<string> {
  const settled = promise.then(
    () => 'fulfilled',
    () => 'rejected',
  );
  return Promise.race([settled, sleep(ms, 'pending')]);
}
