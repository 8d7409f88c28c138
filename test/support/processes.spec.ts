import { type Child, endAfterEach, eventually, spawnChild, type SpawnOptions } from './index.js';
import type { ExampleApi } from './example-child.js';

describe('spawnChild', () => {
  const keep = endAfterEach((child: Child<ExampleApi>) => child.kill());
  const spawn = async (options?: SpawnOptions) =>
    keep(await spawnChild<ExampleApi>(new URL('./example-child.ts', import.meta.url), options));

  it('runs TypeScript in a process of its own', async () => {
    const child = await spawn();
    expect(child.pid).not.toBe(process.pid);
    await expect(child.call('port')).resolves.toBeGreaterThan(1_024);
  });

  it('runs the library from its sources, by its public names', async () => {
    const child = await spawn();
    await expect(child.call('library')).resolves.toContain('LockService');
  });

  it('passes arguments, results and errors through', async () => {
    const child = await spawn();
    await expect(child.call('double', 2n ** 62n)).resolves.toBe(2n ** 63n);
    await expect(child.call('fail', 'too far')).rejects.toMatchObject({ name: 'RangeError', message: 'too far' });
    await expect(child.call('none' as 'port')).rejects.toThrow('does not know "none"');
  });

  it('passes command line and environment on, and none of the options that jest runs with', async () => {
    const child = await spawn({ args: ['a', 'b'], env: { TREE: 'oak' }, nodeArgs: ['--expose-gc'] });
    const { args, tree, execArgv } = await child.call('environment');
    expect([args, tree]).toEqual([['a', 'b'], 'oak']);
    expect(execArgv).toEqual(expect.arrayContaining(['--unhandled-rejections=strict', '--expose-gc']));
  });

  it('answers no call while frozen, and does afterwards', async () => {
    const child = await spawn();
    child.freeze();
    const answer = child.call('double', 4n);
    const early = await Promise.race([answer, (await spawn()).call('double', 1n)]);
    expect(early).toBe(2n);
    child.thaw();
    await expect(answer).resolves.toBe(8n);
  });

  it('rejects the calls under way when it is killed, frozen or not', async () => {
    const child = await spawn();
    const hung = expect(child.call('hang')).rejects.toThrow('The child ended with SIGKILL');
    child.freeze();
    await expect(child.kill()).resolves.toEqual({ code: null, signal: 'SIGKILL' });
    await hung;
    await expect(child.call('port')).rejects.toThrow('closed');
  });

  it('keeps what it wrote to its standard error', async () => {
    const child = await spawn();
    await child.call('complain', 'a bug');
    await eventually(() => expect(child.stderr).toBe('a bug'));
  });

  it('dies of an unhandled rejection', async () => {
    const child = await spawn();
    await child.call('forget');
    await expect(child.exited).resolves.toMatchObject({ code: 1 });
    expect(child.stderr).toContain('nobody listens');
  });

  it('exits by itself once finished, unless something keeps it alive', async () => {
    const [idle, busy] = [await spawn(), await spawn()];
    await busy.call('stayAlive');
    busy.finish();
    idle.finish();
    await expect(idle.exited).resolves.toEqual({ code: 0, signal: null });
    await expect(Promise.race([busy.exited, (await spawn()).call('double', 1n)])).resolves.toBe(2n);
  });

  it('reports a child that cannot start', async () => {
    const missing = spawnChild(new URL('./no-such-child.ts', import.meta.url));
    await expect(missing).rejects.toThrow(/The child ended with 1: [^]*no-such-child/);
  });
});
