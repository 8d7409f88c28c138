import { setTimeout as pause } from 'node:timers/promises';
import type { Progress } from './progress.js';
import type { Shop } from './shop.js';

const MAX_PENDING_BUYERS = 200;
const PATIENCE_MS = 60_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

export interface Sold {
  readonly buyer: string;
  readonly orderId: number;
}

/** Answers that the buyers got. */
export interface Answers {
  readonly sold: Sold[];
  refused: number;
  /** Number of buyers who gave up without an answer. */
  unanswered: number;
  /** Number of writes that the fence refused, as the buyers were told. */
  stale: number;
  /** Number of times that sellers without a lock started again. */
  retries: number;
  readonly latenciesMs: number[];
}

/** Sends every buyer to the shops, `MAX_PENDING_BUYERS` at a time, until each has an answer. */
export async function sendBuyers(
  buyers: number,
  shops: readonly Shop[],
  progress: Progress,
  signal: AbortSignal,
): Promise<Answers> {
  const answers: Answers = { sold: [], refused: 0, unanswered: 0, stale: 0, retries: 0, latenciesMs: [] };
  let next = 1;
  const sendInTurn = async (): Promise<void> => {
    while (next <= buyers && !signal.aborted) {
      const buyer = `buyer-${next}`;
      next += 1;
      const startedAt = performance.now();
      await askUntilAnswered(buyer, shops, answers, progress, signal);
      answers.latenciesMs.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_PENDING_BUYERS, buyers) }, sendInTurn));
  signal.throwIfAborted();
  return answers;
}

/** Asks until there is an answer. That is safe: a buyer who has bought already is told of the same order again. */
async function askUntilAnswered(
  buyer: string,
  shops: readonly Shop[],
  answers: Answers,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  let pauseMs = MIN_PAUSE_MS;
  while (performance.now() < giveUpAt && !signal.aborted) {
    const answer = await findLeastBusy(shops)?.purchase(buyer);
    switch (answer?.kind) {
      case 'bought':
        answers.sold.push({ buyer, orderId: answer.orderId });
        answers.retries += answer.retries;
        return progress.recordSale();
      case 'sold-out':
        answers.refused += 1;
        return;
      case 'again':
        if (answer.reason === 'LOCK_STALE_FENCE') answers.stale += 1;
        break;
      case undefined:
        break;
    }
    await pause(pauseMs);
    pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
  }
  answers.unanswered += 1;
}

/** Returns the shop with the fewest pending buyers, as a load balancer does. A process that hangs gets no more of them. */
function findLeastBusy(shops: readonly Shop[]): Shop | undefined {
  const open = shops.filter((shop) => shop.open);
  return open.toSorted((a, b) => a.pending - b.pending)[0];
}
