import { setTimeout as pause } from 'node:timers/promises';
import type { Progress } from './progress.js';
import type { Shop } from './shop.js';

const AT_ONCE = 200;
const PATIENCE_MS = 60_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1_000;

export interface Sold {
  readonly buyer: string;
  readonly orderId: number;
}

/** The answers that the buyers got. */
export interface Answers {
  readonly sold: Sold[];
  refused: number;
  /** Buyers who gave up without an answer. */
  unanswered: number;
  /** Writes that the fence refused, as the buyers were told. */
  stale: number;
  /** How often `optimistic` sellers started again. */
  retries: number;
  readonly latenciesMs: number[];
}

/** Sends every buyer to the shops, `AT_ONCE` at a time, until each has an answer. */
export async function stampede(
  buyers: number,
  shops: readonly Shop[],
  progress: Progress,
  signal: AbortSignal,
): Promise<Answers> {
  const answers: Answers = { sold: [], refused: 0, unanswered: 0, stale: 0, retries: 0, latenciesMs: [] };
  let next = 1;
  const queue = async (): Promise<void> => {
    while (next <= buyers && !signal.aborted) {
      const buyer = `buyer-${next}`;
      next += 1;
      const startedAt = performance.now();
      await insist(buyer, shops, answers, progress, signal);
      answers.latenciesMs.push(performance.now() - startedAt);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, buyers) }, queue));
  signal.throwIfAborted();
  return answers;
}

/** Asks until there is an answer. Safe, because a buyer who has bought already is told of that very order again. */
async function insist(
  buyer: string,
  shops: readonly Shop[],
  answers: Answers,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  let pauseMs = FIRST_PAUSE_MS;
  while (performance.now() < giveUpAt && !signal.aborted) {
    const answer = await leastBusy(shops)?.purchase(buyer);
    switch (answer?.kind) {
      case 'bought':
        answers.sold.push({ buyer, orderId: answer.orderId });
        answers.retries += answer.retries;
        return progress.soldOne();
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
    pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
  }
  answers.unanswered += 1;
}

/** As a load balancer does it: a process that hangs keeps what it has, and gets no more. */
function leastBusy(shops: readonly Shop[]): Shop | undefined {
  const open = shops.filter((shop) => shop.open);
  return open.toSorted((a, b) => a.pending - b.pending)[0];
}
