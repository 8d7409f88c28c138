import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { wantedOf } from '../backends/describe-backend.js';
import { eventually } from '../support/eventually.js';
import { outcomeOf, reportOf, Stampedes } from './stampedes.js';

const SMALL = ['--processes', '3', '--buyers', '60', '--stock', '10', '--json'];
const PATIENCE = { withinMs: 30_000, everyMs: 50 };
const ENDLESS = ['--processes', '2', '--buyers', '100000', '--stock', '100000'];

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
  }, 60_000);

  it('sells all and no more without locks, --via optimistic', async () => {
    const outcome = await stampedes.run([...SMALL, '--via', 'optimistic']);
    expect(outcome.stderr).not.toContain('FAILED');
    expect(reportOf(outcome)).toMatchObject({ via: 'optimistic', sold: 10, oversold: 0, refused: 50, lost: 0 });
    expect(outcome.code).toBe(0);
  }, 60_000);

  it('prints a table to people', async () => {
    const { stdout } = await stampedes.run(['--backend', 'memory', '--buyers', '20', '--stock', '5']);
    expect(stdout).toMatch(/sold +5\n +oversold +0\n +refused +15/u);
  }, 60_000);

  it('refuses what it does not understand, and shows how it is used', async () => {
    const { code, stdout, stderr } = await stampedes.run(['--colour']);
    expect(stderr).toMatch(/^Unknown option '--colour'/u);
    expect(stderr).toContain('npm run stampede -- [options]');
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  });

  it.each(['redis', 'redis-sentinel', 'redis-cluster', 'memcached', 'zookeeper', 'etcd', 'postgres', 'mariadb'])(
    'says what to install when there is no server of %s',
    async (backend) => {
      const { code, stderr } = await stampedes.run([...SMALL, '--backend', backend], { PATH: '/nowhere' });
      expect(stderr).toContain('cannot be started: install it (Debian: apt-get install');
      expect(code).toBe(1);
      await expect(stampedes.files()).resolves.toEqual([]);
    },
  );

  it.each([
    ['redis', { REDIS_URL: 'redis://:secret@example.com' }, 'REDIS_URL names example.com'],
    ['redis-sentinel', { REDIS_SENTINELS: 'localhost:1,example.com:1/shop' }, 'REDIS_SENTINELS names example.com'],
    ['redis-cluster', { REDIS_CLUSTER: 'localhost:1,example.com:1' }, 'REDIS_CLUSTER names example.com'],
    ['redlock', { REDLOCK_URLS: 'redis://localhost,redis://:secret@example.com' }, 'REDLOCK_URLS names example.com'],
    ['memcached', { MEMCACHED_SERVERS: '127.0.0.1:11211,example.com:11211' }, 'MEMCACHED_SERVERS names example.com'],
    ['zookeeper', { ZOOKEEPER_URL: 'localhost:2181,example.com:2181/shop' }, 'ZOOKEEPER_URL names example.com'],
    ['etcd', { ETCD_ENDPOINTS: 'http://localhost:2379,http://example.com' }, 'ETCD_ENDPOINTS names example.com'],
    ['postgres', { POSTGRES_URL: 'localhost:5432/secret' }, 'POSTGRES_URL must be postgres://'],
    ['postgres', { POSTGRES_URL: 'postgres://ann:secret@example.com/shop' }, 'POSTGRES_URL names example.com'],
    ['mariadb', { MARIADB_URL: 'ann:secret@' }, 'MARIADB_URL must be'],
  ])('never runs against another machine, on %s', async (backend, env, message) => {
    const { code, stderr } = await stampedes.run([...SMALL, '--backend', backend], env);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain('secret');
    expect(code).toBe(1);
  });

  it('kills no server of others', async () => {
    const env = { REDLOCK_URLS: 'redis://localhost:1,redis://localhost:2,redis://localhost:3' };
    const { code, stderr } = await stampedes.run([...SMALL, '--backend', 'redlock', '--kill-nodes', '1'], env);
    expect(stderr).toContain('unset REDLOCK_URLS');
    expect(code).toBe(1);
  });

  it('ends what it started when it is interrupted', async () => {
    const stampede = stampedes.start(ENDLESS);
    const outcome = outcomeOf(stampede);
    await untilItSells();
    stampede.kill('SIGINT');
    const { code, stderr } = await outcome;
    expect([code, stderr]).toEqual([1, expect.stringContaining('ended by SIGINT')]);
    await expect(stampedes.processes()).resolves.toEqual([]);
    await expect(stampedes.files()).resolves.toEqual([]);
  }, 60_000);

  for (const backend of wantedOf([
    'sqlite',
    'redis',
    'redis-sentinel',
    'redis-cluster',
    'redlock',
    'memcached',
    'zookeeper',
    'etcd',
    'postgres',
    'mariadb',
  ])) {
    it(`leaves nothing behind when it is killed itself, on ${backend}`, async () => {
      const stampede = stampedes.start([...ENDLESS, '--backend', backend]);
      await untilItSells();
      stampede.kill('SIGKILL');
      await eventually(async () => {
        expect(await stampedes.processes()).toEqual([]);
        expect(await stampedes.files()).toEqual([]);
      }, PATIENCE);
    }, 60_000);
  }

  /** Whoever it needs has been started then: the keepers of its directory and its server, the server, and the application. */
  async function untilItSells(): Promise<void> {
    const application = (command: string): boolean => command.endsWith('/sample-app/main.js');
    await eventually(async () => (await stampedes.processes()).filter(application).length === 2, PATIENCE);
  }
});
