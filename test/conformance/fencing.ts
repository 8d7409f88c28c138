import { inspect } from 'node:util';
import { type Contract, eventually, LONG_TTL_MS, type Suite, timeLimitOf } from '../support/index.js';

/** The core appends eleven bits for hand-offs, and a token must fit a signed 64-bit column. */
const TOKEN_LIMIT = 2n ** 52n;

export function fencing({ harness, it, timed }: Suite): void {
  it('numbers the acquisitions of a key upwards, whoever makes them', async (contract) => {
    const backends = [await contract.backend(), await contract.backend(), await contract.backend()];
    const key = contract.key();
    let newest = 0n;
    for (const backend of [...backends, ...backends, ...backends]) {
      const lease = await contract.win(backend, key);
      expect(lease.fencingToken).toBeGreaterThan(newest);
      expect(lease.fencingToken).toBeLessThan(TOKEN_LIMIT);
      newest = lease.fencingToken;
      await lease.release();
    }
  });

  timed.it('does not change the number with a renewal', async (contract) => {
    const service = await contract.service();
    const lock = await service.acquire(contract.key());
    const { fencingToken } = lock;
    await new Promise((resolve) => setTimeout(resolve, harness.shortTtlMs));
    expect(lock.fencingToken).toBe(fencingToken);
    await lock.release();
  });

  timed.revoking('goes on upwards after a lease ran out, and after one was taken away', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const key = contract.key();
    const ranOut = await contract.win(ours, key);
    const waitMs = ranOut.times.serverTtlMs * 3 + 5_000;
    const takenAway = await contract.win(theirs, key, { ttlMs: LONG_TTL_MS, waitMs });
    expect(takenAway.fencingToken).toBeGreaterThan(ranOut.fencingToken);
    await harness.revoke(key);
    const last = await contract.win(ours, key, { waitMs: timeLimitOf(5_000) });
    expect(last.fencingToken).toBeGreaterThan(takenAway.fencingToken);
    await last.release();
  });

  if (harness.restart) {
    const { restart } = harness;
    const restarted = async (contract: Contract, how: { readonly empty: boolean }): Promise<void> => {
      const ours = await contract.backend();
      const key = contract.key();
      const before = await contract.win(ours, key);
      await before.release();
      await restart(how);
      const theirs = await contract.backend();
      const after = await eventually(() => contract.win(theirs, key), { withinMs: 10_000 });
      expect(after.fencingToken).toBeGreaterThan(before.fencingToken);
      await after.release();
    };
    for (const how of [{ empty: true }, { empty: false }]) {
      timed.alone(`goes on upwards after a restart of the server, ${inspect(how)}`, (contract) =>
        restarted(contract, how),
      );
    }
  }
}
