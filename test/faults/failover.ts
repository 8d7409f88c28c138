import { LockService } from 'nestjs-distributed-lock/core';
import {
  connectBackend,
  Holder,
  type RedisConnection,
  RedisServer,
  serverToken,
  TemporaryDirectory,
} from '../support/index.js';
import { FencedResource } from '../support/fenced-resource.js';
import { loadHistory, type Operation } from '../support/history.js';
import { checkExclusion, checkResourceOrder, checkTokenOrder } from '../support/history-checker.js';
import { Crowd, moreWrites } from './failover-crowd.js';

const TTL_MS = 500;
/** An answer so soon after the failure was sent before it: a failover takes longer. */
const ON_ITS_WAY_NS = 500_000_000n;

/** Redis servers of which one takes the place of another that fails. */
export interface FailoverServers {
  readonly name: string;
  readonly connection: RedisConnection;
  masterOf(key: string): Promise<RedisServer>;
}

export interface FailoverKeys {
  /** The key that everybody wants. */
  readonly hot: string;
  /** Served by the same master, and held by a process that is stopped during the failover. */
  readonly stale: string;
  /** Served by another master, if there is one. */
  readonly elsewhere?: string;
}

export type Fault = 'killed' | 'frozen, then thawed';

/**
 * Processes hammer a key, and its master fails. What the locks protect is on a server that nothing happens to: no write of a
 * former holder may be accepted there. How long the failover took is printed.
 */
export async function failOver(servers: FailoverServers, keys: FailoverKeys, fault: Fault): Promise<void> {
  using directory = new TemporaryDirectory('failover');
  await using protectedServer = await RedisServer.start();
  using resource = new FencedResource(protectedServer.url);
  const wanted = [keys.hot, keys.hot, keys.elsewhere ?? keys.hot];
  const crowd = new Crowd(servers.connection, wanted, directory.path, protectedServer.url);
  const other = new LockService(await connectBackend(servers.connection));
  await using sleeper = await Holder.start(servers.connection);
  const running = crowd.run();
  // A failure in the crowd is told instead of the silence that follows.
  const more = (count: number) => Promise.race([running, moreWrites(resource, keys.hot, count)]);
  try {
    await more(20);
    await sleeper.acquire(keys.stale, { ttlMs: TTL_MS });
    const victim = await servers.masterOf(keys.hot);
    expect(await servers.masterOf(keys.stale)).toBe(victim);
    const struck: Struck = { failedAt: 0n, waitedMs: 0 };
    const { belief } = await sleeper.freezeWhile(keys.stale, async () => {
      struck.failedAt = await strike(victim, fault);
      const askedAt = performance.now();
      const next = await other.acquire(keys.stale, { ttlMs: 60_000, waitMs: 40_000 });
      struck.waitedMs = performance.now() - askedAt;
      await expect(
        resource.write({ key: keys.stale, token: next.fencingToken, owner: 'next', proc: 'test' }),
      ).resolves.toBe(true);
      await more(20);
      victim.thaw();
      await more(60);
      await next.release();
    });
    expect(belief).toMatchObject({ isHeld: false, state: 'lost', throws: true });
    const late = { key: keys.stale, resource: protectedServer.url };
    await expect(sleeper.child.call('write', late)).resolves.toBe(false);
    crowd.stop();
    await running;

    const writes = [...(await resource.writes(keys.hot)), ...(await resource.writes(keys.stale))];
    expect(checkResourceOrder(writes)?.message).toBeUndefined();
    const history = loadHistory(crowd.files);
    expect(checkTokenOrder(history)?.message).toBeUndefined();
    tell(`${servers.name}, master ${fault}`, history, keys, struck);
  } finally {
    crowd.stop();
    await running.catch(() => undefined);
    await other.close();
  }
}

interface Struck {
  failedAt: bigint;
  /** For how long somebody waited through it. */
  waitedMs: number;
}

/** Resolves to when the server answered nothing any more. */
async function strike(victim: RedisServer, fault: Fault): Promise<bigint> {
  if (fault === 'killed') await victim.kill();
  else victim.freeze();
  return process.hrtime.bigint();
}

function tell(what: string, history: readonly Operation[], { hot, elsewhere }: FailoverKeys, fault: Struck): void {
  const { failedAt, waitedMs } = fault;
  const grants = history.filter(({ op, ok = 0n }) => op === 'acquire' && ok > failedAt);
  const answeredBy = failedAt + ON_ITS_WAY_NS;
  const before = history.filter(({ op, ok = answeredBy }) => op === 'acquire' && ok < answeredBy);
  // A lease of before may still be handed on inside its process.
  const newest = serverToken(
    before.reduce((max, { key, token = 0n }) => (key === hot && token > max ? token : max), 0n),
  );
  const first = grants.find(({ key, token = 0n }) => key === hot && serverToken(token) > newest);
  const took = Number((first?.ok ?? failedAt) - failedAt) / 1e6;
  const longestMs = Math.max(waitedMs, ...grants.map(({ inv, ok = inv }) => Number(ok - inv) / 1e6));
  const meanwhile = grants.filter(({ key, ok = 0n }) => key === elsewhere && ok < (first?.ok ?? 0n)).length;
  if (elsewhere !== undefined) expect(meanwhile).toBeGreaterThan(0);
  expect(took).toBeGreaterThan(0);
  const aside = elsewhere === undefined ? '' : `, ${meanwhile} grants of another master meanwhile`;
  const held = checkExclusion(history) === null ? 'no two holders' : 'two holders for a moment, told apart by tokens';
  const waits = `first new grant after ${took.toFixed(0)} ms, longest wait ${longestMs.toFixed(0)} ms`;
  process.stdout.write(`${what}: ${waits}${aside}; ${held}\n`);
}
