import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { LockService } from 'nestjs-distributed-lock';
import { redis } from 'nestjs-distributed-lock/redis';
import { eventually, RedisServer } from '../support/index.js';

const ORDERS = [
  'lock,bull,typeorm',
  'lock,typeorm,bull',
  'bull,lock,typeorm',
  'bull,typeorm,lock',
  'typeorm,lock,bull',
  'typeorm,bull,lock',
];

describe('SIGTERM during a job of BullMQ and a request, with locks in Redis', () => {
  let server: RedisServer;
  let operator: Redis;
  let rivals: LockService;

  beforeAll(async () => {
    server = await RedisServer.start();
    operator = new Redis(server.url);
    rivals = new LockService(redis({ url: server.url }));
  });
  beforeEach(async () => void (await operator.flushall()));
  afterAll(async () => {
    await rivals.close();
    operator.disconnect();
    await server.stop();
  });

  const report = (): Promise<string[]> => operator.lrange('report', 0, -1);

  /** The report when another process gets the key. */
  const whenFree = async (key: string): Promise<string[]> => {
    await using _lock = await rivals.acquire(key, { waitMs: 60_000 });
    return await report();
  };

  it.each(ORDERS)(
    'imports in the order %s: the work ends with its locks, and the process with the work',
    async (order) => {
      const { child, url } = await start(order, server.url);
      const ended = once(child, 'exit');
      try {
        await fetch(`${url}/jobs`);
        const answer = fetch(`${url}/request`).then((response) => response.text());
        await eventually(async () =>
          expect(await report()).toEqual(expect.arrayContaining(['job 1 begins', 'request begins'])),
        );
        child.kill('SIGTERM');
        const [jobFree, requestFree] = await Promise.all([whenFree('job_1'), whenFree('request')]);
        expect(jobFree).toContain('job 1 ends, held: true');
        expect(requestFree).toContain('request ends, held: true');
        await expect(answer).resolves.toBe('request ends, held: true');
        await expect(ended).resolves.toEqual([null, 'SIGTERM']);
        await expectNoJobLost();
      } finally {
        child.kill('SIGKILL');
      }
    },
  );

  it('tells a request that never ends, when the grace time is over, and frees no key under it', async () => {
    const { child, url } = await start('lock,bull,typeorm', server.url, 500);
    try {
      const answer = fetch(`${url}/hung`).catch(() => undefined);
      await eventually(async () => expect(await report()).toEqual(['hangs']));
      child.kill('SIGTERM');
      await eventually(async () => expect(await report()).toEqual(['hangs', 'told: shutdown']));
      await expect(rivals.tryAcquire('hung')).resolves.toBeNull();
      child.kill('SIGKILL');
      await answer;
    } finally {
      child.kill('SIGKILL');
    }
  });

  async function expectNoJobLost(): Promise<void> {
    const queue = new Queue('jobs', { connection: { host: '127.0.0.1', port: server.port } });
    try {
      const { completed = 0, wait = 0, ...others } = await queue.getJobCounts('completed', 'wait', 'active', 'failed');
      expect({ all: completed + wait, ...others }).toEqual({ all: 3, active: 0, failed: 0 });
      expect(completed).toBeGreaterThan(0);
    } finally {
      await queue.close();
    }
  }
});

async function start(order: string, redisUrl: string, graceMs = 10_000): Promise<{ child: ChildProcess; url: string }> {
  const register = new URL('../support/ts-register.mjs', import.meta.url).href;
  const file = new URL('./bull-application.ts', import.meta.url).pathname;
  const child = fork(file, [order, String(graceMs)], {
    execArgv: ['--import', register],
    env: { ...process.env, NODE_OPTIONS: '', REDIS_URL: redisUrl },
    silent: true,
  });
  let complaints = '';
  child.stdout?.resume();
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const [message]: unknown[] = await Promise.race([once(child, 'message'), once(child, 'exit')]);
  if (typeof message !== 'object' || message === null || !('url' in message)) throw new Error(complaints);
  return { child, url: String(message.url) };
}
