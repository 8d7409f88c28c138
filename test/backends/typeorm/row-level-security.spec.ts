import { LockConfigurationError } from 'nestjs-distributed-lock/core';
import { describeWanted, failureOf, timeLimitOf } from '../../support/index.js';
import { SqlWorld } from './sql-world.js';

const STRATEGIES = ['lease', 'row', 'session'] as const;

describeWanted(['postgres'], 'a lock table with row-level security', (type) => {
  const world = SqlWorld.shared(type);
  beforeAll(async () => {
    await world.ask(`create role clerk login`);
    await world.ask('grant select, insert, update on distributed_lock to clerk');
    await world.ask('alter table distributed_lock enable row level security');
  });
  afterEach(() => world.ask('drop policy if exists rule on distributed_lock'));

  const service = (strategy: (typeof STRATEGIES)[number]) =>
    world.service({ strategy, synchronize: false, url: world.urlOf({ username: 'clerk' }) });

  it.each(STRATEGIES)('is refused at the start where no policy lets the role in: %s', async (strategy) => {
    const error = await failureOf(Promise.resolve(service(strategy).backend.store.start?.()));
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect(String(error)).toMatch(/has row-level security, and no policy lets the role clerk select, insert, update/u);
  });

  it.each(STRATEGIES)('locks where a policy lets the role in: %s', async (strategy) => {
    await world.ask('create policy rule on distributed_lock to clerk using (true)');
    const [ours, theirs] = [service(strategy), service(strategy)];
    const lock = await ours.acquire('k');
    await expect(theirs.tryAcquire('k')).resolves.toBeNull();
    await lock.release();
  });

  it.each(STRATEGIES)('is an error, and never a lock, where a policy hides rows from updates: %s', async (strategy) => {
    await world.ask('create policy rule on distributed_lock for select using (true)');
    await world.ask('create policy insertion on distributed_lock for insert with check (true)');
    await world.ask('create policy change on distributed_lock for update using (false)');
    const since = performance.now();
    const key = `hidden-${strategy}`;
    await world.ask(
      `insert into distributed_lock (lock_key, token, expires_at, acquired_at) values ('${key}', 1, now(), now())`,
    );
    const error = await failureOf(service(strategy).acquire(key, { waitMs: 1_000 }));
    await world.ask('drop policy insertion on distributed_lock');
    await world.ask('drop policy change on distributed_lock');
    expect(String(error)).not.toMatch(/LockTimeoutError/u);
    expect(performance.now() - since).toTakeLessThan(timeLimitOf(10_000));
  });
});
