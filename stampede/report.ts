import type { Order } from '../sample-app/database/order.entity.js';
import type { Plan } from './arguments.js';
import type { Answers } from './buyers.js';
import type { Faults } from './faults.js';

export interface Report extends Faults {
  readonly backend: string;
  readonly via: string;
  readonly unsafe: boolean;
  readonly processes: number;
  readonly buyers: number;
  readonly stock: number;
  /** Number of orders in the database. */
  readonly sold: number;
  readonly oversold: number;
  /** Number of buyers who were told that the sale is sold out. */
  readonly refused: number;
  /** Number of orders that a buyer was promised and the database does not have. */
  readonly lost: number;
  readonly unanswered: number;
  /** Number of servers with the locks that were killed. */
  readonly nodesKilled: number;
  /** Number of writes of former holders that the fence refused. */
  readonly stale: number;
  /** Number of times that a seller without a lock had to start again. */
  readonly retries: number;
  readonly tokensDistinct: boolean;
  readonly tokensGrow: boolean;
  readonly latencyMs: { readonly p50: number; readonly p95: number; readonly p99: number; readonly max: number };
  readonly durationMs: number;
}

/** Reports the outcome by the orders of the database. The buyers' answers add only what it cannot know. */
export function makeReport(
  plan: Plan,
  run: { orders: readonly Order[]; answers: Answers; faults: Faults; nodesKilled: number; durationMs: number },
): Report {
  const { orders, answers, faults } = run;
  const tokens = orders.map(({ fencingToken }) => fencingToken);
  const known = new Map(orders.map(({ id, buyer }) => [buyer, id]));
  return {
    backend: plan.backend,
    via: plan.via,
    unsafe: plan.unsafe,
    processes: plan.processes,
    buyers: plan.buyers,
    stock: plan.stock,
    sold: orders.length,
    oversold: Math.max(0, orders.length - plan.stock),
    refused: answers.refused,
    lost: answers.sold.filter(({ buyer, orderId }) => known.get(buyer) !== orderId).length,
    unanswered: answers.unanswered,
    stale: answers.stale,
    retries: answers.retries,
    ...faults,
    nodesKilled: run.nodesKilled,
    tokensDistinct: !tokens.includes(null) && new Set(tokens).size === tokens.length,
    tokensGrow: tokens.every(
      (token, at) => token !== null && (at === 0 || BigInt(tokens[at - 1] ?? token) < BigInt(token)),
    ),
    latencyMs: computePercentiles(answers.latenciesMs),
    durationMs: Math.round(run.durationMs),
  };
}

/** Returns the broken promises of a run as texts; none when all is well. */
export function findFailures(result: Report): string[] {
  const { sold, stock, buyers, oversold, lost } = result;
  const locked = !result.unsafe && result.via !== 'optimistic';
  const failures: string[] = [];
  if (oversold > 0) failures.push(`oversold: ${sold} orders for ${stock} pieces`);
  if (sold < Math.min(stock, buyers)) failures.push(`only ${sold} of ${stock} pieces were sold to ${buyers} buyers`);
  if (lost > 0) failures.push(`${lost} orders were promised and are not in the database`);
  if (locked && !result.tokensDistinct) failures.push('two orders share a fencing token');
  if (locked && !result.tokensGrow) failures.push('fencing tokens do not grow from order to order');
  return failures;
}

function computePercentiles(values: readonly number[]): Report['latencyMs'] {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => Math.round(sorted[Math.ceil(sorted.length * share) - 1] ?? 0);
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
