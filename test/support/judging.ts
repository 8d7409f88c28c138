import { appendFileSync } from 'node:fs';
import { relative } from 'node:path';

import { WithheldTime } from './withheld.js';

/** What the file and line of an assertion look like in the stack of an error. */
const SOURCE_LINE = /\((?:file:\/\/)?(\/.*?\/test\/(?!support\/judging\.ts).*?:\d+):\d+\)/u;

const withheld = new WithheldTime();
withheld.start();
afterAll(() => withheld.stop());

expect.extend({
  /**
   * For milliseconds that have just passed. Where the processor was withheld from the test, its children and its servers
   * for as long as the time came late, the outcome is not judged: that is counted and printed, and never a failure.
   */
  toTakeLessThan(tookMs: unknown, limitMs: number) {
    if (typeof tookMs !== 'number' || Number.isNaN(tookMs)) throw new TypeError(`${String(tookMs)} is no time`);
    const lateMs = tookMs - limitMs;
    const pass = lateMs < 0 || !isJudged({ lateMs, tookMs });
    const message = (): string => `took ${round(tookMs)} ms instead of less than ${round(limitMs)} ms`;
    return { pass, message };
  },
});

/**
 * Whether the outcome of something that has just taken `tookMs` and came so late can be judged: it cannot where the
 * processor was withheld for longer than that, which is then counted and printed.
 */
export function isJudged({ lateMs, tookMs }: { readonly lateMs: number; readonly tookMs: number }): boolean {
  const withheldMs = withheld.since(performance.now() - tookMs);
  if (withheldMs <= lateMs) return true;
  const { testPath = '' } = expect.getState();
  const [, line = ''] = SOURCE_LINE.exec(new Error().stack ?? '') ?? [];
  const place = [line, testPath].map((path) => relative(process.cwd(), path)).join(', ');
  const what = `${place}: ${round(lateMs)} ms late, the processor was withheld for ${round(withheldMs)} ms`;
  process.stderr.write(`Not judged: ${what}\n`);
  if (process.env.LOCK_NOT_JUDGED) appendFileSync(process.env.LOCK_NOT_JUDGED, `${what}\n`);
  return false;
}

function round(ms: number): number {
  return Math.round(ms);
}
