import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

import { eventually } from './eventually.js';
import { TemporaryDirectory } from './temporary-directory.js';
import { WithheldTime } from './withheld.js';

const BURN = 'for (;;);';

describe('a time that came late', () => {
  it('fails a test whose processes had the processor', () => {
    expect(() => expect(10_000_000).toTakeLessThan(5)).toThrow('took 10000000 ms instead of less than 5 ms');
  });

  it('is counted as not judged where they did not, by the place of the assertion', async () => {
    using directory = new TemporaryDirectory('judging');
    const { LOCK_NOT_JUDGED: ofRun } = process.env;
    process.env.LOCK_NOT_JUDGED = join(directory.path, 'not-judged');
    try {
      await whileStarved(async (withheld, since) => {
        await eventually(() => withheld.since(since) > 200, { everyMs: 50 });
        const tookMs = performance.now() - since;
        expect(tookMs).toTakeLessThan(tookMs - 50);
      });
      await expect(readFile(process.env.LOCK_NOT_JUDGED, 'utf8')).resolves.toMatch(
        /^test\/support\/judging\.spec\.ts:\d+, .*: 50 ms late, the processor was withheld for \d+ ms\n$/u,
      );
    } finally {
      if (ofRun === undefined) delete process.env.LOCK_NOT_JUDGED;
      else process.env.LOCK_NOT_JUDGED = ofRun;
    }
  });
});

/** Runs the work while two children of this process want the same processor. */
async function whileStarved(work: (withheld: WithheldTime, since: number) => Promise<void>): Promise<void> {
  const withheld = new WithheldTime();
  withheld.start();
  const since = performance.now();
  const children = [1, 2].map(() => spawn('taskset', ['-c', '0', process.execPath, '-e', BURN]));
  const ended = children.map((child) => once(child, 'exit'));
  try {
    await work(withheld, since);
  } finally {
    withheld.stop();
    for (const child of children) child.kill('SIGKILL');
    await Promise.all(ended);
  }
}
