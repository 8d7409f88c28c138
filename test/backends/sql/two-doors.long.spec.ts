import { LockService } from 'nestjs-distributed-lock/core';
import { connectBackend, describeWanted, type Door } from '../../support/index.js';
import { SQL_SERVERS, sqlHarness } from '../typeorm/harness.js';

/** Grants of the two services together. */
const GRANTS = Number(process.env.TWO_DOORS_GRANTS ?? 600);
const CALLERS = 4;

describeWanted(SQL_SERVERS, 'two services on one table, one by TypeORM and one by the driver, %s', (name) => {
  const harness = sqlHarness(name);
  beforeAll(() => harness.start());
  afterAll(() => harness.stop());

  const open = async (door: Door): Promise<LockService> =>
    new LockService(await connectBackend({ ...harness.connection(), door }), { maxHandOffMs: 0 });

  it('exclude each other, and their tokens grow', async () => {
    // A hand-off within one process would keep the other one out.
    const services = [await open('typeorm'), await open('driver')];
    let inside = 0;
    let overlaps = 0;
    let newest = 0n;
    let backwards = 0;
    const callers = services.flatMap((service) =>
      Array.from({ length: CALLERS }, async () => {
        for (let taken = 0; taken < GRANTS / CALLERS / 2; taken += 1) {
          await service.withLock(
            'shared by two doors',
            async ({ fencingToken }) => {
              inside += 1;
              if (inside > 1) overlaps += 1;
              if (fencingToken <= newest) backwards += 1;
              newest = fencingToken;
              await Promise.resolve();
              inside -= 1;
            },
            { waitMs: 60_000 },
          );
        }
      }),
    );
    await Promise.all(callers);
    await Promise.all(services.map((service) => service.close()));
    expect({ overlaps, backwards }).toEqual({ overlaps: 0, backwards: 0 });
  });
});
