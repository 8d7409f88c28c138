import { aborted, describeWanted, eventually, UNRENEWED_TTL_MS } from '../../support/index.js';
import { LISTENERS, SqlWorld } from './sql-world.js';

describeWanted(['postgres'], 'a holder on %s whom another process evicts', (type) => {
  const world = SqlWorld.shared(type);

  it('is told at once, if its process listens for its own waiters', async () => {
    const [holders, operators] = [world.service(), world.service()];
    const other = await operators.acquire('other');
    const waiting = holders.acquire('other', { waitMs: 10_000 });
    await eventually(async () => expect(await world.ask(LISTENERS)).toHaveLength(1));
    await other.release();
    await (await waiting).release();
    const lock = await holders.acquire('key', { ttlMs: UNRENEWED_TTL_MS });
    await operators.evict('key');
    await aborted(lock.signal);
    expect(lock.signal.reason).toMatchObject({ reason: 'revoked' });
  });
});
