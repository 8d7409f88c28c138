import type { LockService } from 'nestjs-distributed-lock/core';
import { type Lease, PATIENT_MS, type Suite } from '../support/index.js';

/** Long enough for a machine that is busy with something else. */
const LONG_TTL_MS = 10_000;

export function exclusion({ it }: Suite): void {
  it('grants a free key, for the time that was asked or more', async (contract) => {
    const { shortTtlMs } = contract.harness;
    const before = performance.now();
    const lease = await contract.win(await contract.backend(), contract.key());
    expect(lease.times.serverTtlMs).toBeGreaterThanOrEqual(shortTtlMs);
    expect(lease.times.sentAt).toBeGreaterThanOrEqual(before);
    expect(lease.times.sentAt).toBeLessThanOrEqual(performance.now());
    await lease.release();
  });

  it('refuses a key that another client, or this one, has', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const key = contract.key();
    const lease = await contract.win(ours, key, { ttlMs: LONG_TTL_MS });
    await expect(contract.contend(theirs, key)).resolves.toBeNull();
    await expect(contract.contend(ours, key)).resolves.toBeNull();
    await lease.release();
  });

  it('answers the same owner with the key again, so that a lost reply can be asked for again', async (contract) => {
    const backend = await contract.backend();
    const [key, owner] = [contract.key(), 'the-very-same-owner-twice-12345'];
    const first = await contract.win(backend, key, { owner, ttlMs: LONG_TTL_MS });
    const again = await contract.win(backend, key, { owner, ttlMs: LONG_TTL_MS });
    expect(again.fencingToken).toBeGreaterThanOrEqual(first.fencingToken);
    await again.release();
    await expect(contract.harness.leftovers(key)).resolves.toEqual([]);
  });

  it('keeps keys apart', async (contract) => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const [one, another] = [contract.key(), contract.key()];
    const lease = await contract.win(ours, one, { ttlMs: LONG_TTL_MS });
    const other = await contract.win(theirs, another, { ttlMs: LONG_TTL_MS });
    await lease.release();
    await expect(contract.contend(ours, another)).resolves.toBeNull();
    await other.release();
  });

  it('gives a contested key to exactly one of many who try at once', async (contract) => {
    const backends = await Promise.all(Array.from({ length: 4 }, () => contract.backend()));
    const key = contract.key();
    const tries = [...backends, ...backends, ...backends].map((backend) =>
      contract.contend(backend, key, { ttlMs: LONG_TTL_MS }),
    );
    const leases = (await Promise.all(tries)).filter((lease): lease is Lease => lease !== null);
    expect(leases).toHaveLength(1);
    await leases[0]?.release();
  });

  it('never lets two of 3 × 20 callers inside', async (contract) => {
    const services = await Promise.all(Array.from({ length: 3 }, () => contract.service()));
    const key = contract.key();
    const visits = new Visits();
    const callers = services.flatMap((service) => Array.from({ length: 20 }, () => visits.pay(service, key)));
    await Promise.all(callers);
    expect(visits).toMatchObject({ paid: 60, most: 1 });
    expect(visits.tokens).toEqual(visits.tokens.toSorted((a, b) => Number(a - b)));
    expect(new Set(visits.tokens).size).toBe(60);
  });
}

class Visits {
  paid = 0;
  most = 0;
  readonly tokens: bigint[] = [];
  #inside = 0;

  async pay(service: LockService, key: string): Promise<void> {
    const options = { waitMs: PATIENT_MS, ttlMs: LONG_TTL_MS };
    await service.withLock(
      key,
      async ({ fencingToken }) => {
        this.most = Math.max(this.most, ++this.#inside);
        this.tokens.push(fencingToken);
        const { paid } = this;
        await new Promise(setImmediate);
        this.paid = paid + 1;
        this.#inside -= 1;
      },
      options,
    );
  }
}
