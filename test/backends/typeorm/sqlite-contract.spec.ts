import { Contract, failureOf } from '../../conformance/contract.js';
import { sqliteHarness } from './sqlite-harness.js';
import { describeBackend } from '../describe-backend.js';

describeBackend('sqlite', () => {
  const harness = sqliteHarness();
  const contract = new Contract(harness);
  beforeAll(() => harness.start());
  afterEach(() => contract.endTest());
  afterAll(() => harness.stop());

  it('does not keep the database locked after a statement that found it locked', async () => {
    const [ours, theirs] = [await contract.backend(), await contract.backend()];
    const lease = await contract.win(ours, contract.key(), { ttlMs: 20_000 });
    const thaw = await harness.freeze?.();
    await expect(failureOf(lease.renew())).resolves.toMatchObject({ message: expect.stringContaining('locked') });
    await thaw?.();
    // With libsql 0.5, the failed statement lives on, and with it the write lock of whatever its connection writes next.
    await lease.release();
    const other = await contract.win(theirs, contract.key(), { waitMs: 3_000 });
    await other.release();
  });
});
