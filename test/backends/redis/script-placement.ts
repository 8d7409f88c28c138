import { type ChainableCommander, Redis } from 'ioredis';
import { isExclusive } from 'nestjs-distributed-lock/core';
import { parseKeyState } from '../../../lib/backends/redis/queue/key-state.js';
import type { Holding, Schedule, Sight, Step } from '../../simulation/claims/moments.js';
import { DELETE, DIE, type LineScripts, PASS, SILENCE } from './placement-scripts.js';

/** A unit of the time of schedules is so long that none passes meanwhile. */
const UNIT_MS = 1_000_000;
/** Longest lease of a waiter that was handed the key and has not asked since: see `GRANT_TTL_MS` of the scripts. */
const MAX_GRANT_MS = 5_000;
/** A schedule that took longer may have seen such a grant end. */
const MAX_RUN_MS = 1_500;
const RUNS = 10;

/** More than the queue waits for the question of a waiter, and less than it keeps its place. */
const SILENT_MS = 30_000;

const CHANNEL = 'placements';
const METADATA = '{"host":"somewhere","pid":1}';

type Names = Record<keyof LineScripts | 'pass' | 'die' | 'silence', string>;

/** Keys of a real server, which only the scripts change. Owners who wait listen on one channel. */
export class ScriptPlacement {
  readonly #told = new Set<string>();
  #runs = 0;
  #onMarker = (): void => undefined;

  private constructor(
    private readonly redis: Redis,
    private readonly listener: Redis,
    private readonly names: Names,
  ) {
    listener.on('message', (_channel: string, message: string) => {
      if (message === 'marker') this.#onMarker();
      else this.#told.add(message.replace(/\|0$/u, ''));
    });
  }

  static async start(url: string, scripts: LineScripts): Promise<ScriptPlacement> {
    const [redis, listener] = [new Redis(url), new Redis(url)];
    await listener.subscribe(CHANNEL);
    const sources = Object.entries({ ...scripts, pass: PASS, die: DIE, silence: SILENCE });
    const names = sources.map(async ([name, source]) => [name, String(await redis.script('LOAD', source))] as const);
    return new ScriptPlacement(redis, listener, Object.fromEntries(await Promise.all(names)) as Names);
  }

  stop(): void {
    this.redis.disconnect();
    this.listener.disconnect();
  }

  /** Resolves to the sights after each step of each schedule. All are sent at once: the server takes one step after the other. */
  async sightsOf(schedules: readonly Schedule[]): Promise<Sight[][]> {
    for (let run = 0; run < RUNS; run += 1) {
      const began = performance.now();
      const sights = await this.#run(schedules);
      // A machine that stands still for so long says nothing of the scripts.
      if (performance.now() - began < MAX_RUN_MS) return sights;
    }
    throw new Error(`the server is too slow: ${schedules.length} schedules take ${MAX_RUN_MS} ms and more`);
  }

  async #run(schedules: readonly Schedule[]): Promise<Sight[][]> {
    this.#runs += 1;
    const pipeline = this.redis.pipeline();
    const positions = schedules.map(({ seed, moments }) =>
      moments.map(({ step }) => this.#send(pipeline, `line:${this.#runs}:${seed}`, step)),
    );
    const replies = ((await pipeline.flushall().exec()) ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    await this.#allTold();
    const told = new Set(this.#told);
    this.#told.clear();
    return schedules.map(({ moments }, index) =>
      moments.map(({ step }, place) => {
        const position = positions[index]?.[place] ?? NaN;
        return sightOf(step, replies[position], replies[position + 1], told);
      }),
    );
  }

  /** Messages come in the order in which they are sent. */
  async #allTold(): Promise<void> {
    const marker = new Promise<void>((resolve) => (this.#onMarker = resolve));
    await this.redis.publish(CHANNEL, 'marker');
    await marker;
  }

  /** Returns the position of the reply to the step, which the reply to a look follows. */
  #send(pipeline: ChainableCommander, key: string, step: Step): number {
    const { names } = this;
    if (step.does === 'ask') {
      const address = step.waits ? CHANNEL : '';
      const name = isExclusive(step.owner) ? names.acquire : names.acquireShare;
      pipeline.evalsha(name, 1, key, step.owner, step.lasts * UNIT_MS, `${address}|${METADATA}`);
    } else if (step.does === 'renew') {
      // A renewal that shortens a lease, which no holder asks for, would let the lease vanish before its end.
      pipeline.hdel(`${key}:w`, '');
      const [name, ...keys] = isExclusive(step.owner) ? [names.renew, key] : [names.renewShare, key, `${key}:s`];
      pipeline.evalsha(name, keys.length, ...keys, step.owner, step.lasts * UNIT_MS);
    } else if (step.does === 'release') {
      pipeline.evalsha(isExclusive(step.owner) ? names.release : names.releaseShare, 1, key, step.owner);
    } else if (step.does === 'die') pipeline.evalsha(names.die, 1, key, step.owner);
    else if (step.does === 'silence') pipeline.evalsha(names.silence, 1, key, step.owner, SILENT_MS);
    else if (step.does === 'pass') pipeline.evalsha(names.pass, 1, key, step.units * UNIT_MS);
    else pipeline.eval(DELETE, 1, key);
    pipeline.evalsha(names.look, 1, key, 100);
    return pipeline.length - 2;
  }
}

function sightOf({ does }: Step, reply: unknown, look: unknown, told: ReadonlySet<string>): Sight {
  const { holder, holders = holder ? [holder] : [] } = parseKeyState(look);
  const isQuestion = does === 'ask' || does === 'renew' || does === 'release';
  const holdings = holders.map(({ owner, leftMs = 0, fencingToken }): Holding => ({
    owner,
    ...(leftMs > MAX_GRANT_MS ? { left: Math.ceil(leftMs / UNIT_MS) } : {}),
    ...(fencingToken === undefined ? {} : { token: fencingToken }),
  }));
  return {
    ...(isQuestion ? { answer: isYes(reply) } : {}),
    holdings,
    wasTold: (owner) => told.has(owner),
  };
}

/** Returns whether a script answers with a token or with 1. */
function isYes(reply: unknown): boolean {
  return typeof reply === 'string' || reply === 1;
}
