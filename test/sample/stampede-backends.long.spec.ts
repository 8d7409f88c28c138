import { DataSource } from 'typeorm';
import { BACKEND_NAMES } from '../../stampede/shop-process/lock-backends.js';
import { eventually, timeLimitOf, wantedOf } from '../support/index.js';
import { EtcdServer } from '../servers/etcd-server.js';
import { MysqlServer } from '../servers/mysql-server.js';
import { PostgresServer } from '../servers/postgres-server.js';
import { ZookeeperEnsemble } from '../servers/zookeeper-ensemble.js';
import { ZookeeperOperator } from '../servers/zookeeper-operator.js';
import { EtcdOperator } from '../backends/etcd/operator.js';
import { SideBySide } from '../support/side-by-side.js';
import { CHOICES, reportOf, Stampedes } from './stampedes.js';

/** `STAMPEDE=full` for as many as a real stampede has. */
const [PROCESSES, BUYERS, STOCK] = process.env.STAMPEDE === 'full' ? [4, 1_000, 100] : [3, 60, 10];
const SIZE = ['--processes', `${PROCESSES}`, '--buyers', `${BUYERS}`, '--stock', `${STOCK}`];
const ARGS = [...SIZE, '--json', '--kill', '--freeze'];
/** Three processes start for each, and three stampedes run at once: a machine with other work takes a minute for one. */
const TIME_LIMIT_MS = 300_000 + BUYERS * 200;
/** Half of its time a stampede waits for the locks of those who were killed or frozen. */
const AT_ONCE = 3;

/** Further strategies of a database get a server from us; all others start their own. */
const strategies = BACKEND_NAMES.filter((name) => /-(?:row|session)$/u.test(name));

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
    start: () => MysqlServer.start('mariadb'),
    databases: 'select schema_name as name from information_schema.schemata',
  },
] as const;

interface Cluster {
  readonly env: Readonly<Record<string, string>>;
  /** Rejects while nobody has the lock of the sale. */
  locked(): Promise<void>;
  leader(): Promise<{ kill(): Promise<void> }>;
  stop(): Promise<void>;
}

const CLUSTERS = {
  async zookeeper(): Promise<Cluster> {
    const ensemble = await ZookeeperEnsemble.start();
    const operator = new ZookeeperOperator(ensemble.connectString);
    return {
      env: { ZOOKEEPER_URL: ensemble.connectString },
      locked: async () => expect(await operator.children('/locks')).toContain('lock_sale_42'),
      leader: () => ensemble.leader(),
      async stop() {
        await operator.close();
        await ensemble.stop();
      },
    };
  },
  async etcd(): Promise<Cluster> {
    const server = await EtcdServer.start({ members: 3 });
    const operator = new EtcdOperator(server.urls);
    return {
      env: { ETCD_ENDPOINTS: server.urls.join(',') },
      locked: async () => expect(await operator.list('lock/lock_sale_42')).not.toEqual([]),
      leader: () => server.leader(),
      stop: () => server.stop(),
    };
  },
};

describe('a stampede in which one process is killed and one frozen with the lock', () => {
  const together = new SideBySide(AT_ONCE);
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
    const args = [...ARGS, '--backend', backend, '--kill-nodes', String(nodesKilled)];
    // Slow payments, so that there is one to strike when the news of it comes late.
    const outcome = await stampedes.run(args, { PAYMENT_MS: '100', ...env });
    expect(outcome.stderr).not.toContain('FAILED');
    expect(reportOf(outcome)).toMatchObject({
      backend,
      sold: STOCK,
      oversold: 0,
      refused: BUYERS - STOCK,
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

  for (const backend of wantedOf(CHOICES)) {
    together.it(`sells all and no more on ${backend}`, () => sellsAllAndNoMore(backend), timeLimitOf(TIME_LIMIT_MS));
  }

  for (const backend of wantedOf(['zookeeper', 'etcd'])) {
    together.it(
      `sells all and no more on three servers of ${backend} whose leader is killed, too`,
      async () => {
        const cluster = await CLUSTERS[backend]();
        try {
          // An election takes less.
          const env = { ...cluster.env, LOCK_TTL_MS: '3000', PAYMENT_MS: '100' };
          const running = stampedes.run([...ARGS, '--backend', backend], env);
          // Three processes have to start first.
          await eventually(() => cluster.locked(), { withinMs: TIME_LIMIT_MS / 2 });
          await (await cluster.leader()).kill();
          const outcome = await running;
          expect(outcome.stderr).not.toContain('FAILED');
          expect(reportOf(outcome)).toMatchObject({
            sold: STOCK,
            oversold: 0,
            lost: 0,
            kills: 1,
            freezes: 1,
            tokensGrow: true,
          });
          expect(outcome.code).toBe(0);
        } finally {
          await cluster.stop();
        }
      },
      timeLimitOf(TIME_LIMIT_MS),
    );
  }

  for (const { type, variable, start, databases } of SERVERS) {
    const names = wantedOf(strategies.filter((name) => name.startsWith(type)));
    if (names.length === 0) continue;
    let server: PostgresServer | MysqlServer;

    beforeAll(async () => {
      server = await start();
    });

    afterAll(async () => server.stop());

    for (const name of names) {
      const onGivenServer = () => sellsAllAndNoMore(name, { [variable]: server.url });
      together.it(
        `sells all and no more on ${name}, on a given server of ${type}`,
        onGivenServer,
        timeLimitOf(TIME_LIMIT_MS),
      );
    }

    it(`drops every database on a given server of ${type}`, async () => {
      const dataSource = await new DataSource({ type, url: server.url }).initialize();
      const left: { name: string }[] = await dataSource.query(databases);
      await dataSource.destroy();
      expect(left.filter(({ name: database }) => database.startsWith('flash_sale'))).toEqual([]);
    });
  }

  together.run();
});
