import { LockConfigurationError, type LockService } from 'nestjs-distributed-lock/core';
import { aborted, eventually, type Suite } from '../support/index.js';

export function leading({ harness, it }: Suite): void {
  it('one of two leads and the other knows who; it leads when the first has ended, with a higher token', async (contract) => {
    const key = contract.key();
    const tokens: bigint[] = [];
    const lead = (service: LockService) =>
      service.lead(
        key,
        async (term) => {
          tokens.push(term.fencingToken);
          await aborted(term.signal);
        },
        { ttlMs: contract.processTtlMs },
      );
    const first = lead(await contract.service({ label: 'first' }));
    await eventually(() => first.isLeader);
    const second = lead(await contract.service({ label: 'second' }));
    const told = second.leader();
    if (harness.namesHolder) await expect(told).resolves.toMatchObject({ label: 'first', pid: process.pid });
    else await expect(told).rejects.toThrow(LockConfigurationError);
    expect([first.isLeader, second.isLeader]).toEqual([true, false]);
    await first.close();
    await eventually(() => second.isLeader);
    if (harness.namesHolder) await expect(first.leader()).resolves.toMatchObject({ label: 'second' });
    await second.close();
    if (harness.namesHolder) await expect(first.leader()).resolves.toBeUndefined();
    expect(tokens.length).toBe(2);
    expect(tokens[1]).toBeGreaterThan(tokens[0] ?? 0n);
    await eventually(async () => expect(await harness.leftovers(key)).toEqual([]));
  });
}
