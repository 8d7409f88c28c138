import type { LockEvents, LockService } from 'nestjs-distributed-lock/core';
import { type Contract, eventually, LONG_TTL_MS, PATIENT_MS, type Suite } from '../support/index.js';

const CALLERS = 50;

/** A call with `awaitRelease: false` ends before its release is answered. */
export function lateRelease({ harness, it, timed }: Suite): void {
  const late = { awaitRelease: false, ttlMs: LONG_TTL_MS, waitMs: PATIENT_MS };

  const stampede = async (contract: Contract, where: 'per call' | 'per service'): Promise<void> => {
    const defaults = where === 'per service' ? late : {};
    const options = where === 'per call' ? late : {};
    const services = [
      await contract.service({ defaults, maxHandOffs: 3 }),
      await contract.service({ defaults, maxHandOffs: 3 }),
    ];
    const key = contract.key();
    const tokens: bigint[] = [];
    let [inside, most] = [0, 0];
    const visit = (service: LockService): Promise<void> =>
      service.withLock(
        key,
        async ({ fencingToken }) => {
          most = Math.max(most, (inside += 1));
          tokens.push(fencingToken);
          await new Promise(setImmediate);
          inside -= 1;
        },
        options,
      );
    await Promise.all(Array.from({ length: CALLERS / 2 }, () => services.map(visit)).flat());
    expect({ visits: tokens.length, most }).toEqual({ visits: CALLERS, most: 1 });
    expect(tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? token))).toBe(true);
    await Promise.all(services.map((service) => service.close()));
    await expect(harness.leftovers(key)).resolves.toEqual([]);
  };
  for (const where of ['per call', 'per service'] as const) {
    it(`keeps a stampede apart, with growing tokens, ${where}`, (contract) => stampede(contract, where));
  }

  it('is over when the service is closed', async (contract) => {
    const [ours, theirs] = [await contract.service(), await contract.service()];
    const key = contract.key();
    await ours.withLock(key, () => undefined, late);
    await ours.close();
    await expect(harness.leftovers(key)).resolves.toEqual([]);
    const next = await theirs.tryAcquire(key);
    expect(next).not.toBeNull();
    await next?.release();
  });

  it('leaves an error of the work untouched', async (contract) => {
    const service = await contract.service();
    const error = new Error('of the work');
    const working = service.withLock(contract.key(), () => Promise.reject(error), late);
    await expect(working).rejects.toBe(error);
  });

  // Transactional work fails with its commit, which comes before the release.
  if (harness.freeze && harness.transactional !== true) {
    const { freeze } = harness;
    timed.alone('that fails is an event, not an error of the call', async (contract) => {
      const failures: LockEvents['backendFailed'][] = [];
      const ours = await contract.service({ observers: [{ backendFailed: (event) => failures.push(event) }] });
      const theirs = await contract.service();
      const key = contract.key();
      let thaw = async (): Promise<void> => undefined;
      try {
        const working = ours.withLock(
          key,
          async () => {
            thaw = await freeze();
            return 'done';
          },
          { awaitRelease: false },
        );
        await expect(working).resolves.toBe('done');
        await eventually(() => expect(failures).toMatchObject([{ key, operation: 'release' }]), {
          withinMs: harness.shortTtlMs * 2 + 5_000,
        });
      } finally {
        await thaw();
      }
      const next = await theirs.acquire(key, { waitMs: harness.shortTtlMs * 2 + 5_000 });
      await next.release();
      await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
    });
  }
}
