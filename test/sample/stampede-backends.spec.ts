import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { BACKEND_NAMES } from '../../sample-app/lock-backends.js';
import { wantedOf } from '../backends/describe-backend.js';
import { MariadbServer } from '../servers/mariadb-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { ZookeeperEnsemble } from '../servers/zookeeper-ensemble.js';
import { ZookeeperOperator } from '../servers/zookeeper-operator.js';
import { eventually } from '../support/eventually.js';
import { reportOf, Stampedes } from './stampedes.js';

const SMALL = ['--processes', '3', '--buyers', '60', '--stock', '10', '--json', '--kill', '--freeze'];

/** Every choice of `LOCK_BACKEND` that locks across processes. */
const backends = BACKEND_NAMES.filter((name) => name !== 'memory');
/** Further strategies of a database get a server from us; all others start their own. */
const strategies = backends.filter((name) => /-(?:row|session)$/u.test(name));

/** A minority, or a master that somebody can replace. */
const NODES_KILLED: Readonly<Record<string, number>> = { redlock: 2, 'redis-sentinel': 1, 'redis-cluster': 1 };

const SERVERS = [
  {
    type: 'postgres',
    variable: 'POSTGRES_URL',
    start: () => PostgresServer.start(),
    databases: 'select datname as name from pg_database',
  },
  {
    type: 'mariadb',
    variable: 'MARIADB_URL',
    start: () => MariadbServer.start(),
    databases: 'select schema_name as name from information_schema.schemata',
  },
] as const;

describe('a stampede in which one process is killed and one frozen with the lock', () => {
  let stampedes: Stampedes;

  beforeAll(async () => {
    stampedes = await Stampedes.prepare();
  });

  afterAll(async () => {
    const left = await stampedes.files();
    await stampedes[Symbol.asyncDispose]();
    expect(left).toEqual([]);
  });

  const sellsAllAndNoMore = async (backend: string, env: Record<string, string> = {}): Promise<void> => {
    const nodesKilled = NODES_KILLED[backend] ?? 0;
    const args = [...SMALL, '--backend', backend, '--kill-nodes', String(nodesKilled)];
    // Slow payments, so that there is one to strike when the news of it comes late.
    const outcome = await stampedes.run(args, { PAYMENT_MS: '100', ...env });
    expect(outcome.stderr).not.toContain('FAILED');
    expect(reportOf(outcome)).toMatchObject({
      backend,
      sold: 10,
      oversold: 0,
      refused: 50,
      lost: 0,
      unanswered: 0,
      kills: 1,
      freezes: 1,
      nodesKilled,
      tokensDistinct: true,
      tokensGrow: true,
    });
    expect(outcome.code).toBe(0);
  };

  for (const backend of wantedOf(backends.filter((name) => !strategies.includes(name)))) {
    it(`sells all and no more on ${backend}`, () => sellsAllAndNoMore(backend), 120_000);
  }

  for (const backend of wantedOf(['zookeeper'])) {
    it(`sells all and no more on an ensemble of ${backend} whose leader is killed, too`, async () => {
      const ensemble = await ZookeeperEnsemble.start();
      const operator = new ZookeeperOperator(ensemble.connectString);
      try {
        // An election takes less.
        const env = { ZOOKEEPER_URL: ensemble.connectString, LOCK_TTL_MS: '3000', PAYMENT_MS: '100' };
        const running = stampedes.run([...SMALL, '--backend', backend], env);
        await eventually(async () => expect(await operator.children('/locks')).toHaveLength(1), { withinMs: 30_000 });
        await (await ensemble.leader()).kill();
        const outcome = await running;
        expect(outcome.stderr).not.toContain('FAILED');
        expect(reportOf(outcome)).toMatchObject({
          sold: 10,
          oversold: 0,
          lost: 0,
          kills: 1,
          freezes: 1,
          tokensGrow: true,
        });
        expect(outcome.code).toBe(0);
      } finally {
        await operator.close();
        await ensemble.stop();
      }
    }, 120_000);
  }

  describe.each(SERVERS)('on a given server of $type', ({ type, variable, start, databases }) => {
    const names = wantedOf(strategies.filter((name) => name.startsWith(type)));
    let server: PostgresServer | MariadbServer | undefined;

    beforeAll(async () => {
      if (names.length > 0) server = await start();
    });

    afterAll(async () => server?.stop());

    for (const name of names) {
      it(`sells all and no more on ${name}, and drops its database`, async () => {
        const url = server?.url ?? '';
        await sellsAllAndNoMore(name, { [variable]: url });
        const dataSource = await new DataSource({ type, url }).initialize();
        const left: { name: string }[] = await dataSource.query(databases);
        await dataSource.destroy();
        expect(left.filter(({ name: database }) => database.startsWith('flash_sale'))).toEqual([]);
      }, 120_000);
    }
  });
});
