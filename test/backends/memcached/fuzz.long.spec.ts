import assert from 'node:assert/strict';
import { randomInt, randomUUID } from 'node:crypto';
import { ReportedHealth, systemClock } from 'nestjs-distributed-lock/core';
import { MemcachedError } from 'nestjs-distributed-lock/memcached';
import { ClassicDialect } from '../../../lib/backends/memcached/classic/classic-dialect.js';
import type { MemcachedConnection } from '../../../lib/backends/memcached/transport/connection.js';
import { MemcachedLeaseStore } from '../../../lib/backends/memcached/lease-store.js';
import { MetaDialect } from '../../../lib/backends/memcached/meta-dialect.js';
import { probeCapabilities } from '../../../lib/backends/memcached/capability-probe.js';
import type { MemcachedServers } from '../../../lib/backends/memcached/servers.js';
import { ServerClock } from '../../../lib/backends/memcached/server-clock.js';
import { VerifiedConnection } from '../../../lib/backends/memcached/verified-connection.js';
import { wantedOf } from '../../support/wanted-backends.js';
import { FAULT_NAMES } from './mangled.js';
import { MangledConnection } from './mangled-connection.js';
import { ModelServer } from './model-server.js';
import { Random } from '../../support/random.js';

/** `FUZZ_SEED=random` for others than those of every run; what it was is printed. */
const SEED = process.env.FUZZ_SEED === 'random' ? randomInt(1, 2 ** 31) : Number(process.env.FUZZ_SEED ?? 20_261_121);
const CASES = 100_000;
const TTL_MS = 30_000;
const METADATA = { host: 'somewhere', pid: 1, label: 'f\u00fcr uns' };

const PROTOCOLS = { 'memcached-meta': MetaDialect, 'memcached-classic': ClassicDialect } as const;
const wanted = wantedOf(['memcached-meta', 'memcached-classic']);

describe('answers that are cut, mixed, doubled and invented', () => {
  wanted.forEach((name) => {
    it(`let nobody in who has no right to, and leave nothing open (${name})`, async () => {
      const random = new Random(SEED);
      const cases = CASES / wanted.length;
      const outcomes = { granted: 0, refused: 0, renewed: 0, lost: 0, released: 0, 'not released': 0, failed: 0 };
      for (let i = 0; i < cases; i += 1) {
        const fault = random.below(4) === 0 ? 'nothing' : random.oneOf(FAULT_NAMES);
        const world = new World(PROTOCOLS[name], fault, random);
        for (const outcome of await world.play(random)) outcomes[outcome] += 1;
      }
      process.stdout.write(`${name}: ${cases} cases with FUZZ_SEED=${SEED}: ${JSON.stringify(outcomes)}\n`);
      for (const count of Object.values(outcomes)) expect(count).toBeGreaterThan(cases / 200);
    });
  });
});

type Outcome = 'granted' | 'refused' | 'renewed' | 'lost' | 'released' | 'not released' | 'failed';

/** The value of a key on the server before anybody asks. */
const BEFORE = ['free', 'free', 'ours', 'ours', 'theirs', 'garbage'] as const;
const COUNTER = ['absent', 'absent', 'ours', 'ours', 'ours', 'ours', 'low', 'text'] as const;

/** One process, its one connection, and the truth. */
class World {
  readonly #server = new ModelServer();
  readonly #store: MemcachedLeaseStore;
  readonly #connection: VerifiedConnection;

  constructor(
    Dialect: typeof MetaDialect | typeof ClassicDialect,
    private readonly fault: string,
    random: Random,
  ) {
    const link = new MangledConnection(this.#server, fault, random);
    const clock = new ServerClock(this.#server.now, systemClock.now(), systemClock.now());
    this.#connection = new VerifiedConnection(
      link as unknown as MemcachedConnection,
      new Dialect(link),
      clock,
      new Map(),
      { prefix: 'lock', serverListText: 'one server' },
    );
    const node = { run: <T>(work: (connection: VerifiedConnection) => Promise<T>) => work(this.#connection) };
    const health = new ReportedHealth();
    const nothing = async (): Promise<undefined> => undefined;
    const servers = {
      health,
      start: nothing,
      assertSameServerList: nothing,
      getNode: () => node,
      close: () => undefined,
    };
    this.#store = new MemcachedLeaseStore(servers as unknown as MemcachedServers, 'lock');
  }

  /** One or two callers, at once, over one connection. */
  async play(random: Random): Promise<Outcome[]> {
    const keys = ['k', 'other'].slice(0, 1 + random.below(2));
    const probe = random.below(10) === 0 ? [this.#probeCapabilities()] : [];
    const calls = keys.map((key) => this.#call(key, random));
    return (await Promise.all([...calls, ...probe])).flat();
  }

  async #call(key: string, random: Random): Promise<Outcome[]> {
    const [owner, other] = [randomUUID(), randomUUID()];
    const values = { ours: `${owner}|1|{}`, theirs: `${other}|1|{"host":"h","pid":2}`, garbage: 'not one of ours' };
    const before = random.oneOf(BEFORE);
    if (before !== 'free') this.#server.put(`lock:l:${key}`, values[before], random.oneOf([0, 3, 600]));
    const counter = random.oneOf(COUNTER);
    const counts = { ours: String(BigInt(this.#server.now) * 1_000_000n), low: '41', text: 'forty-one' };
    if (counter !== 'absent') this.#server.put(`lock:f:${key}`, counts[counter], 0);
    try {
      return [await random.oneOf([this.#acquire, this.#acquire, this.#renew, this.#release])(key, owner)];
    } catch (error) {
      if (!(error instanceof MemcachedError)) throw error;
      if (this.#honest) assert(counter === 'low' || counter === 'text', error);
      return ['failed'];
    }
  }

  readonly #acquire = async (key: string, owner: string): Promise<Outcome> => {
    const before = this.#ownerOf(key);
    const attempt = await this.#store.tryAcquire(key, owner, TTL_MS, METADATA);
    if (this.#honest) assert.equal(attempt.acquired, before === undefined || before === owner);
    if (!attempt.acquired) return 'refused';
    assert.equal(this.#ownerOf(key), owner);
    assert(this.#leftOf(key) >= TTL_MS / 1_000);
    assert(attempt.fencingToken > 1n << 50n);
    if (this.#honest) assert.equal(String(attempt.fencingToken), this.#server.live(`lock:f:${key}`)?.value);
    return 'granted';
  };

  readonly #renew = async (key: string, owner: string): Promise<Outcome> => {
    const before = this.#ownerOf(key);
    const renewed = await this.#store.renew(key, owner, TTL_MS);
    assert.equal(this.#ownerOf(key), before);
    if (this.#honest) assert.equal(renewed, before === owner);
    if (!renewed) return 'lost';
    assert.equal(before, owner);
    assert(this.#leftOf(key) >= TTL_MS / 1_000);
    return 'renewed';
  };

  /** Whatever comes back, what is others' stays. */
  readonly #release = async (key: string, owner: string): Promise<Outcome> => {
    const before = this.#ownerOf(key);
    const released = await this.#store.release(key, owner);
    if (this.#honest) assert.equal(released, before === owner);
    if (before !== owner) assert.equal(this.#ownerOf(key), before);
    return released ? 'released' : 'not released';
  };

  async #probeCapabilities(): Promise<Outcome[]> {
    const { dialect, clock } = this.#connection;
    try {
      await probeCapabilities(dialect, 'lock', clock, systemClock.now());
    } catch (error) {
      assert(error instanceof MemcachedError && !this.#honest, String(error));
    }
    return [];
  }

  /** All that is wrong is where the network cuts. */
  get #honest(): boolean {
    return this.fault === 'nothing';
  }

  #leftOf(key: string): number {
    const date = this.#server.live(`lock:l:${key}`)?.exptime ?? 0;
    return date === 0 ? Infinity : date - this.#server.now;
  }

  #ownerOf(key: string): string | undefined {
    return this.#server.live(`lock:l:${key}`)?.value.split('|')[0];
  }
}
