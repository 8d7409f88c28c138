import { startServerFor } from '../../stampede/servers/index.js';
import { LOCK_BACKENDS } from '../../stampede/shop-process/lock-backends.js';
import { CHOICES, reportOf, Stampedes } from './stampedes.js';
import '../support/slow-machine.js';

const SMALL = ['--processes', '3', '--buyers', '60', '--stock', '10', '--json'];

const SERVERS = CHOICES.flatMap((backend) => {
  const { variable } = LOCK_BACKENDS[backend];
  return variable === undefined ? [] : [{ backend, variable }];
});

describe('npm run stampede', () => {
  let stampedes: Stampedes;

  beforeAll(async () => {
    stampedes = await Stampedes.prepare();
  });

  afterAll(async () => stampedes[Symbol.asyncDispose]());

  it('oversells with --unsafe, and says so', async () => {
    const outcome = await stampedes.run([...SMALL, '--unsafe']);
    expect(reportOf(outcome).oversold).toBeGreaterThan(0);
    expect(outcome.stderr).toMatch(/FAILED {2}oversold: \d+ orders for 10 pieces/u);
    expect(outcome.code).toBe(1);
  });

  it('oversells with the lock alone, where a process writes after it stood still', async () => {
    const faults = ['--freeze', '--via', 'without-fence', '--stock', '20'];
    const outcome = await stampedes.run(['--processes', '3', '--buyers', '100', '--json', ...faults]);
    expect(reportOf(outcome)).toMatchObject({ via: 'without-fence', freezes: 1, lost: 0 });
    expect(reportOf(outcome).oversold).toBeGreaterThan(0);
    expect(outcome.code).toBe(1);
  });

  it('sells all and no more without locks, --via optimistic', async () => {
    const size = ['--processes', '3', '--buyers', '250', '--stock', '200', '--json'];
    const outcome = await stampedes.run([...size, '--via', 'optimistic']);
    expect(outcome.stderr).not.toContain('FAILED');
    expect(reportOf(outcome)).toMatchObject({ via: 'optimistic', sold: 200, oversold: 0, refused: 50, lost: 0 });
    expect(outcome.code).toBe(0);
  });

  it('prints a table to people', async () => {
    const { stdout } = await stampedes.run(['--backend', 'memory', '--buyers', '20', '--stock', '5']);
    expect(stdout).toMatch(/sold +5\n +oversold +0\n +refused +15/u);
  });

  it('refuses what it does not understand, and shows how it is used', async () => {
    const { code, stdout, stderr } = await stampedes.run(['--colour']);
    expect(stderr).toMatch(/^Unknown option '--colour'/u);
    expect(stderr).toContain('npm run stampede -- [options]');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it.each(SERVERS)('says what to install when there is no server of $backend', async ({ backend }) => {
    const { code, stderr } = await stampedes.run([...SMALL, '--backend', backend], { PATH: '/nowhere' });
    expect(stderr).toContain('cannot be started: install it (Debian: apt-get install');
    expect(code).toBe(1);
    await expect(stampedes.files()).resolves.toEqual([]);
  });

  it.each([
    ['redis', { REDIS_URL: 'redis://:secret@example.com' }, 'REDIS_URL names example.com'],
    ['redlock', { REDLOCK_URLS: 'redis://localhost,redis://:secret@example.com' }, 'REDLOCK_URLS names example.com'],
    ['postgres', { POSTGRES_URL: 'localhost:5432/secret' }, 'POSTGRES_URL must be postgres://'],
    ['postgres', { POSTGRES_URL: 'postgres://ann:secret@example.com/shop' }, 'POSTGRES_URL names example.com'],
    ['mariadb', { MARIADB_URL: 'ann:secret@' }, 'MARIADB_URL must be'],
  ])('never runs against another machine, on %s', async (backend, env, message) => {
    const { code, stderr } = await stampedes.run([...SMALL, '--backend', backend], env);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('secret');
    expect(code).toBe(1);
  });

  it.each(SERVERS)('never uses a server of another machine that $variable names', async ({ variable }) => {
    for (const address of ['example.com:1', '127.0.0.1:1,example.com:2', 'tcp://[::1]:1,tcp://example.com:2/name']) {
      await expect(startServerFor(variable, { [variable]: address })).rejects.toThrow(`${variable} names example.com`);
    }
  });

  it('kills no server of others', async () => {
    const env = { REDLOCK_URLS: 'redis://localhost:1,redis://localhost:2,redis://localhost:3' };
    const { code, stderr } = await stampedes.run([...SMALL, '--backend', 'redlock', '--kill-nodes', '1'], env);
    expect(stderr).toContain('unset REDLOCK_URLS');
    expect(code).toBe(1);
  });
});
