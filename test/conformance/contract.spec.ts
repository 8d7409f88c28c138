import { memoryHarness } from '../backends/memory/harness.js';
import { Contract } from './contract.js';

it('ends what a test waits for when its time is up, and fails after its clean-up', async () => {
  const harness = memoryHarness();
  await harness.start();
  await using contract = new Contract(harness);
  let isClean = false;
  const waitForEver = async ({ timeIsUp }: Contract): Promise<void> => {
    const [holder, waiter, key] = [await contract.service(), await contract.service(), contract.key()];
    try {
      await holder.acquire(key, { ttlMs: 60_000 });
      await waiter.acquire(key, { waitMs: 60_000 });
    } finally {
      isClean = timeIsUp.aborted;
    }
  };
  await expect(contract.run(waitForEver, 20)).rejects.toThrow('was not over after 20 ms');
  expect(isClean).toBe(true);
  await harness.stop();
});
