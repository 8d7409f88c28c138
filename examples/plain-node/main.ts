import { LockService } from 'nestjs-distributed-lock/core';
import { redis } from 'nestjs-distributed-lock/redis';
import { env } from 'node:process';

const backend = redis({ url: env['REDIS_URL'] ?? 'redis://localhost:6379' });
const [here, there] = [new LockService(backend), new LockService(backend)]; // as two processes would

let stock = 10;
const sell = async (): Promise<boolean> => {
  const seen = stock;
  await new Promise((resolve) => void setImmediate(resolve)); // a database
  if (seen > 0) stock = seen - 1;
  return seen > 0;
};

const buyers = Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? here : there));
const sold = await Promise.all(buyers.map((locks) => locks.withLock('sale_42', sell)));
console.log(`${sold.filter(Boolean).length} of 50 buyers got one of 10 pieces, ${stock} are left`);

await using lock = await here.acquire('report', { ttlMs: 5_000 });
const other = await there.tryAcquire('report');
console.log(other === null ? 'the report is busy' : 'the report was free');
await lock.release();
await Promise.all([here.shutdown(), there.shutdown()]);
