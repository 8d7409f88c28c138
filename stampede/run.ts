import { join } from 'node:path';
import type { Plan } from './arguments.js';
import { sendBuyers } from './buyers.js';
import { findDoomedNodes, inflictFaults, killServers } from './faults.js';
import { makeTemporaryDirectory } from './kept/temporary-directory.js';
import { PaymentWatch } from './payment-watch.js';
import { Progress } from './progress.js';
import { makeReport, type Report } from './report.js';
import { startServerFor } from './servers/index.js';
import { Shop, type ShopOptions } from './shop.js';
import { assertDatabase } from './shop-process/database-type.js';
import { LOCK_BACKENDS } from './shop-process/lock-backends.js';

/** TTL of the locks unless the environment says otherwise: a killed or frozen process keeps its lock for so long. */
const LOCK_TTL_MS = '2000';
const SALE_FILE = 'sale.sqlite';

/** Runs a whole stampede. All that it starts or writes is gone afterwards, also when it fails, `signal` aborts or it is killed. */
export async function run(plan: Plan, signal: AbortSignal): Promise<Report> {
  const { variable = '', database } = LOCK_BACKENDS[plan.backend];
  await using directory = await makeTemporaryDirectory('flash-sale-');
  await using server = variable === '' ? undefined : await startServerFor(variable, process.env);
  const doomed = findDoomedNodes(plan, server);
  if (server && database) assertDatabase(variable, server.address, database);
  // Loads TypeORM, which a stampede without a server does not need.
  const { createDatabase, createSale, findOrders } = await import('./sale-database.js');
  const file = join(directory.path, SALE_FILE);
  await using sale = await createDatabase(server && database ? server.address : file);
  await createSale(sale.address, plan.stock);
  await using shops = await openShops(plan.processes, {
    backend: plan.backend,
    directory: directory.path,
    env: {
      ...(server && { [variable]: database ? sale.address : server.address }),
      // Relative to their directory, so that a process which outlives it for a moment cannot bring it back.
      SALE_DB: sale.address === file ? SALE_FILE : sale.address,
      LOCK_TTL_MS: process.env['LOCK_TTL_MS'] ?? LOCK_TTL_MS,
    },
    route: findRoute(plan),
  });

  signal.throwIfAborted();
  const watch = new PaymentWatch(shops.all);
  const progress = new Progress();
  const startedAt = performance.now();
  const buyers = sendBuyers(plan.buyers, shops.all, progress, signal).finally(() => progress.end());
  const work = Promise.all([buyers, inflictFaults(plan, watch, progress), killServers(doomed, plan.stock, progress)]);
  const [answers, faults, nodesKilled] = await Promise.race([work, rejectOnAbort(signal)]);
  const durationMs = performance.now() - startedAt;
  return makeReport(plan, { orders: await findOrders(sale.address), answers, faults, nodesKilled, durationMs });
}

function findRoute({ unsafe, via }: Plan): string {
  if (unsafe) return 'purchases/unsafe';
  return via === 'locked' ? 'purchases' : `purchases/${via}`;
}

async function openShops(
  processes: number,
  options: ShopOptions,
): Promise<AsyncDisposable & { readonly all: readonly Shop[] }> {
  const starts = await Promise.allSettled(
    Array.from({ length: processes }, (_, index) => Shop.start(`shop-${index + 1}`, options)),
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

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  });
}
