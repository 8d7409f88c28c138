import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Report } from '../../sample-app/stampede/report.js';
import { eventually } from '../support/eventually.js';
import { type CompiledSample, compileSample } from './compiled-sample.js';

const SMALL = ['--processes', '3', '--buyers', '60', '--stock', '10', '--json'];

describe('npm run stampede', () => {
  let sample: CompiledSample;
  let directory: string;
  let running: ChildProcess[] = [];

  beforeAll(async () => {
    sample = await compileSample();
    directory = await mkdtemp(join(tmpdir(), 'stampede-'));
  });

  afterAll(async () => {
    // Whatever a stampede leaves behind would still be in here.
    const left = await readdir(directory);
    await rm(directory, { recursive: true });
    await sample[Symbol.asyncDispose]();
    expect(left).toEqual([]);
  });

  afterEach(() => {
    for (const child of running) child.kill('SIGKILL');
    running = [];
  });

  const start = (args: readonly string[], env: Record<string, string> = {}): ChildProcess => {
    const child = spawn(process.execPath, [sample.stampede, ...args], {
      env: { PATH: process.env['PATH'], TMPDIR: directory, ...env },
    });
    running.push(child);
    return child;
  };

  const finish = async (child: ChildProcess): Promise<{ code: unknown; stdout: string; stderr: string }> => {
    if (!child.stdout || !child.stderr) throw new Error('the output is piped');
    const exit = once(child, 'exit');
    const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
    return { code, stdout, stderr };
  };

  const report = (stdout: string): Report => JSON.parse(stdout) as Report;

  it.each(['sqlite', 'redis'])(
    'sells all and no more on %s, though one process is killed and one frozen with the lock',
    async (backend) => {
      const { code, stdout, stderr } = await finish(start([...SMALL, '--backend', backend, '--kill', '--freeze']));
      expect(stderr).not.toContain('FAILED');
      expect(report(stdout)).toMatchObject({
        backend,
        sold: 10,
        oversold: 0,
        refused: 50,
        lost: 0,
        unanswered: 0,
        kills: 1,
        freezes: 1,
        tokensDistinct: true,
        tokensGrow: true,
      });
      expect(code).toBe(0);
    },
    60_000,
  );

  it('oversells with --unsafe, and says so', async () => {
    const { code, stdout, stderr } = await finish(start([...SMALL, '--unsafe']));
    expect(report(stdout).oversold).toBeGreaterThan(0);
    expect(stderr).toMatch(/FAILED {2}oversold: \d+ orders for 10 pieces/u);
    expect(code).toBe(1);
  }, 60_000);

  it('prints a table to people', async () => {
    const { stdout } = await finish(start(['--backend', 'memory', '--buyers', '20', '--stock', '5']));
    expect(stdout).toMatch(/sold +5\n +oversold +0\n +refused +15/u);
  }, 60_000);

  it.each([
    [['--backend', 'etcd3'], 'memory; it was "etcd3"'],
    [['--backend', 'memory', '--processes', '2'], '--backend memory locks inside one process only'],
    [['--processes', '0'], '--processes must be a whole number from 1 to 16; it was "0"'],
    [['--stock', '0'], '--stock must be a whole number'],
    [['--buyers', 'many'], '--buyers must be a whole number'],
    [['--kill', '--freeze', '--processes', '2'], 'this needs --processes 3 or more'],
    [['--colour'], "Unknown option '--colour'"],
    [['fast'], "Unexpected argument 'fast'"],
  ])('refuses %j', async (args, message) => {
    const { code, stdout, stderr } = await finish(start(args));
    expect(stderr).toContain(message);
    expect(stderr).toContain('npm run stampede -- [options]');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it('says what to install when there is no redis-server', async () => {
    const { code, stderr } = await finish(start([...SMALL, '--backend', 'redis'], { PATH: '/nowhere' }));
    expect(stderr).toContain('apt-get install redis-server');
    expect(code).toBe(1);
  });

  it('never runs against another machine', async () => {
    const { code, stderr } = await finish(
      start([...SMALL, '--backend', 'redis'], { REDIS_URL: 'redis://example.com' }),
    );
    expect(stderr).toContain('REDIS_URL names example.com');
    expect(code).toBe(1);
  });

  it.each([
    ['SIGINT', 'sqlite'],
    ['SIGINT', 'redis'],
    ['SIGKILL', 'sqlite'],
    ['SIGKILL', 'redis'],
  ] as const)(
    'leaves nothing behind when %s ends it, on %s',
    async (signal, backend) => {
      const stampede = start(['--backend', backend, '--processes', '2', '--buyers', '100000', '--stock', '100000']);
      const finished = finish(stampede);
      await eventually(async () => {
        // The stampede, two of the application, the keepers of the directory and of the server, and the server.
        expect(await processesIn(directory)).toHaveLength(backend === 'redis' ? 6 : 4);
      });
      stampede.kill(signal);
      const { code, stderr } = await finished;
      if (signal === 'SIGINT')
        expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('ended by SIGINT') });
      await eventually(async () => {
        expect(await processesIn(directory)).toEqual([]);
        expect(await readdir(directory)).toEqual([]);
      });
    },
    60_000,
  );
});

/** Whoever works in there, or was told to put temporary files there: some servers overwrite what they were told. */
async function processesIn(directory: string): Promise<string[]> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/u.test(name));
  const belong = pids.map(async (pid) => {
    const environment = await readFile(`/proc/${pid}/environ`, 'utf8').catch(() => '');
    const worksIn = await readlink(`/proc/${pid}/cwd`).catch(() => '');
    return environment.includes(`TMPDIR=${directory}\0`) || worksIn.startsWith(`${directory}/`);
  });
  const ours = await Promise.all(belong);
  return pids.filter((_, at) => ours[at]);
}
