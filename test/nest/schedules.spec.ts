import { jest } from '@jest/globals';
import { Injectable, Logger, type Type } from '@nestjs/common';
import { Cron, Interval } from '@nestjs/schedule';
import { Locked, type LockedOptions, oncePer } from 'nestjs-distributed-lock';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

async function warningsOf(job: Type): Promise<readonly unknown[]> {
  const lines: string[] = [];
  const warn = jest
    .spyOn(Logger.prototype, 'warn')
    .mockImplementation((line: unknown) => void lines.push(String(line)));
  try {
    await providing(new Crossing(), job);
  } finally {
    warn.mockRestore();
  }
  // On a busy machine Nest itself warns of modules that it takes long to look at.
  return lines.filter((line) => line.includes('Job.run'));
}

describe('a locked job', () => {
  it('of an interval is refused where other processes would run it in between', async () => {
    @Injectable()
    class Job {
      @Interval(1_000)
      @Locked('job', oncePer(1_000))
      async run(): Promise<void> {}
    }
    const refusal = "Give { onBusy: 'skip', minHoldMs: 900 }";
    await expect(providing(new Crossing(), Job)).rejects.toThrow(refusal);
  });

  it('of an interval starts with most of its period', async () => {
    @Injectable()
    class Job {
      @Locked('job', { onBusy: 'skip', minHoldMs: 900 })
      @Interval(1_000)
      async run(): Promise<void> {}
    }
    await expect(warningsOf(Job)).resolves.toEqual([]);
  });

  it('of a cron that says nothing of other processes is warned of', async () => {
    @Injectable()
    class Job {
      @Cron('0 3 * * *')
      @Locked('job')
      async run(): Promise<void> {}
    }
    await expect(warningsOf(Job)).resolves.toEqual([
      expect.stringContaining('Job.run is a @Cron job of every process'),
    ]);
  });

  it.each<LockedOptions>([{ onBusy: 'throw' }, { waitMs: 0 }, oncePer(60_000)])(
    'of a cron with %j is not',
    async (options) => {
      @Injectable()
      class Job {
        @Cron('0 3 * * *')
        @Locked('job', options)
        async run(): Promise<undefined> {
          return undefined;
        }
      }
      await expect(warningsOf(Job)).resolves.toEqual([]);
    },
  );
});
