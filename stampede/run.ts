import { join } from 'node:path';
import { DataSource } from 'typeorm';
import { databaseOptions } from '../sample-app/database/database-options.js';
import { assertDatabase } from '../sample-app/database/database-type.js';
import { seed } from '../sample-app/database/seed.js';
import { LOCK_BACKENDS } from '../sample-app/lock-backends.js';
import type { Plan } from './arguments.js';
import { stampede } from './buyers.js';
import { doomedNodes, inflictFaults, killServers } from './faults.js';
import { temporaryDirectory } from './kept/temporary-directory.js';
import { newDatabase } from './new-database.js';
import { PaymentWatch } from './payment-watch.js';
import { Progress } from './progress.js';
import { report, type Report } from './report.js';
import { serverFor } from './servers/index.js';
import { type Opening, Shop } from './shop.js';

/** How long the lock of a killed or frozen process is missed, unless the environment says otherwise. */
const LOCK_TTL_MS = '2000';
const SALE_FILE = 'sale.sqlite';

/** Runs a whole stampede. Whatever it started or wrote is gone afterwards, also when it fails, `signal` aborts or it is killed. */
export async function run(plan: Plan, signal: AbortSignal): Promise<Report> {
  const { variable = '', database } = LOCK_BACKENDS[plan.backend];
  await using directory = await temporaryDirectory('flash-sale-');
  await using server = variable === '' ? undefined : await serverFor(variable, process.env);
  const doomed = doomedNodes(plan, server);
  if (server && database) assertDatabase(variable, server.address, [database]);
  const file = join(directory.path, SALE_FILE);
  await using sale = await newDatabase(server && database ? server.address : file);
  await createSale(sale.address, plan.stock);
  const settings = {
    ...(server && { [variable]: database ? sale.address : server.address }),
    // Relative to their directory, so that a process which outlives it for a moment cannot bring it back.
    SALE_DB: sale.address === file ? SALE_FILE : sale.address,
    LOCK_BACKEND: plan.backend,
    LOCK_TTL_MS: process.env['LOCK_TTL_MS'] ?? LOCK_TTL_MS,
    UNSAFE: plan.unsafe ? '1' : '0',
  };
  await using shops = await openShops(plan.processes, { cwd: directory.path, settings, via: plan.via });

  signal.throwIfAborted();
  const watch = await PaymentWatch.start(plan.kill || plan.freeze ? shops.all : []);
  const progress = new Progress();
  const startedAt = performance.now();
  const buyers = stampede(plan.buyers, shops.all, progress, signal).finally(() => progress.end());
  const work = Promise.all([buyers, inflictFaults(plan, watch, progress), killServers(doomed, plan.stock, progress)]);
  const [answers, faults, nodesKilled] = await Promise.race([work, rejectedBy(signal)]);
  const durationMs = performance.now() - startedAt;
  // Not the promise of it: that would outlive what it reads.
  return await report(plan, { database: sale.address, answers, faults, nodesKilled, durationMs });
}

/** Before the processes start, so that they do not all try to make the tables. */
async function createSale(database: string, stock: number): Promise<void> {
  const dataSource = await new DataSource(databaseOptions(database)).initialize();
  await seed(dataSource.manager, stock);
  await dataSource.destroy();
}

async function openShops(
  processes: number,
  opening: Opening,
): Promise<AsyncDisposable & { readonly all: readonly Shop[] }> {
  const starts = await Promise.allSettled(
    Array.from({ length: processes }, (_, index) => Shop.start(`shop-${index + 1}`, opening)),
  );
  const all = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(all.map((shop) => shop.kill()));
  };
  const failed = starts.find((start) => start.status === 'rejected');
  if (!failed) return { all, [Symbol.asyncDispose]: close };
  await close();
  throw failed.reason;
}

function rejectedBy(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
