import type { LockService } from 'nestjs-distributed-lock/core';
import type { Contract } from '../conformance/contract.js';

/** Work under a lock whose server is frozen when it ends, and until `check` is over. */
export async function whenFrozen<T>(
  contract: Contract,
  service: LockService,
  end: () => T | Promise<T>,
  check: (work: Promise<T>) => Promise<unknown>,
): Promise<void> {
  let thaw = async (): Promise<void> => undefined;
  const work = service.withLock(contract.key(), async () => {
    thaw = (await contract.harness.freeze?.()) ?? thaw;
    return await end();
  });
  try {
    await check(work);
  } finally {
    await thaw();
  }
}
