import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Contract, Holder, type Listener, RedisServer, timeLimitOf, wantedOf } from '../support/index.js';
import { goingThrough, registered } from '../backends/registry.js';
import { describeOnBackend } from '../conformance/describe-lock-backend.js';
import { FencedResource } from '../support/fenced-resource.js';
import { redlockHarness } from '../backends/redlock/harness.js';
import { SQL_SERVERS, sqlHarness } from '../backends/typeorm/harness.js';
import { sqliteHarness } from '../backends/typeorm/sqlite-harness.js';
import { loadHistory } from '../support/history.js';
import {
  checkExclusion,
  checkFencedExclusion,
  checkResourceOrder,
  checkTokenOrder,
} from '../support/history-checker.js';
import { logStatements } from '../support/statement-log.js';
import { ProxiedBackend } from './proxied-backend.js';

/** `HAMMER_MS=10000` for the whole of it. */
const RUN_MS = Number(process.env.HAMMER_MS ?? 1_000);
const PROCESSES = 8;
/** Nothing harms anybody here: nobody loses a lock, and everybody gets it in the end. */
const TTL_MS = 20_000;
const WAIT_MS = 60_000;
const LIMIT_MS = RUN_MS + timeLimitOf(300_000);

type Count = (work: () => Promise<unknown>) => Promise<number>;

describe(`${PROCESSES} processes on one key`, () => {
  const holders: Holder[] = [];
  let directory: string;
  let server: RedisServer;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'hammer-'));
    server = await RedisServer.start();
    holders.push(...(await Promise.all(Array.from({ length: PROCESSES }, () => Holder.spawn()))));
  }, timeLimitOf(300_000));
  afterAll(async () => {
    await Promise.all(holders.map((holder) => holder.kill()));
    await server.stop();
    await rm(directory, { recursive: true });
  });

  /** How many grants there were. */
  const hammer = async (contract: Contract, key: string): Promise<number> => {
    const files = holders.map((_, place) => join(directory, `${key}-${place}.jsonl`));
    const shares = await Promise.all(
      holders.map(({ child }, place) =>
        child.call('hammer', {
          keys: [key],
          ms: RUN_MS,
          callers: 2,
          ttlMs: TTL_MS,
          waitMs: WAIT_MS,
          strict: true,
          history: files[place] ?? '',
          proc: `p${place}`,
          resource: server.url,
        }),
      ),
    );
    const history = loadHistory(files);
    for (const check of [checkExclusion, checkFencedExclusion, checkTokenOrder]) {
      expect(check(history)?.message).toBeUndefined();
    }
    const grants = shares.reduce((sum, share) => sum + share, 0);
    expect(history.filter(({ op, ok }) => op === 'acquire' && ok !== undefined)).toHaveLength(grants);
    using resource = new FencedResource(server.url);
    const writes = await resource.writes(key);
    expect(writes.filter(({ accepted }) => accepted)).toHaveLength(grants);
    expect(checkResourceOrder(writes)?.message).toBeUndefined();
    await expect(contract.harness.leftovers(key)).resolves.toEqual([]);
    return grants;
  };
  const sqliteCount: Count = async (work) => {
    const asked = () => Promise.all(holders.map(({ child }) => child.call('sqliteStatements')));
    const before = await asked();
    await work();
    return (await asked()).reduce((sum, count, place) => sum + count - (before[place] ?? 0), 0);
  };

  const property = 'never two holders, tokens that grow strictly, no error, and every write accepted';

  for (const name of wantedOf(['sqlite', ...SQL_SERVERS])) {
    const sql = name === 'sqlite' ? undefined : sqlHarness(name, { sessionTtlMs: TTL_MS });
    describeOnBackend(name, sql ?? sqliteHarness(), (contract) => {
      const counted = async (): Promise<void> => {
        const log = sql && (await logStatements(sql));
        const count: Count = log ? async (work) => (await log.during(work)).length : sqliteCount;
        await run(contract, name, count, 'statements');
      };
      it(`${RUN_MS} ms: ${property}`, counted, LIMIT_MS);
    });
  }

  for (const name of wantedOf(['redlock'])) {
    const redlock = redlockHarness();
    describeOnBackend(name, redlock, (contract) => {
      const count: Count = async (work) => {
        const votes = async (): Promise<number> => (await redlock.servers()[0]?.commandStats())?.get('evalsha') ?? 0;
        const before = await votes();
        await work();
        return (await votes()) - before;
      };
      it(`${RUN_MS} ms: ${property}`, () => run(contract, name, count, 'requests to each node'), LIMIT_MS);
    });
  }

  const throughProxy = (contract: Contract, name: string): void => {
    const counted = async (): Promise<void> => {
      await using world = await ProxiedBackend.start(contract);
      const { proxy } = world;
      const count: Count = async (work) => {
        let requests = 0;
        const stop = proxy.onRequest(() => (requests += 1));
        await work();
        stop();
        return requests;
      };
      await run(contract, name, count, 'requests', proxy);
    };
    it(`${RUN_MS} ms: ${property}`, counted, LIMIT_MS);
  };
  const elsewhere = ['sqlite', 'redlock', ...SQL_SERVERS];
  for (const name of wantedOf(goingThrough('hammer').filter((one) => !elsewhere.includes(one)))) {
    describeOnBackend(name, registered(name).harness({ sessionTtlMs: TTL_MS }), (contract) =>
      throughProxy(contract, name),
    );
  }

  async function run(contract: Contract, name: string, count: Count, what: string, through?: Listener): Promise<void> {
    const connection = contract.harness.connection?.(through);
    if (!connection) throw new Error('other processes have to connect');
    // Everybody has a connection, and the table is there, when it begins.
    for (const holder of holders) {
      await holder.open(connection);
      await holder.acquire(name, { ttlMs: TTL_MS });
      await holder.child.call('release', name);
    }
    let grants = 0;
    const asked = await count(async () => (grants = await hammer(contract, `hot-${name}`)));
    await Promise.all(holders.map((holder) => holder.close()));
    expect(grants).toBeGreaterThan(RUN_MS / 100);
    const each = (asked / grants).toFixed(1);
    process.stdout.write(`${name}: ${PROCESSES} processes, ${RUN_MS} ms: ${grants} grants, ${each} ${what} each\n`);
  }
});
