import type * as Core from 'nestjs-distributed-lock/core';
import type { Line, LineEntry } from 'nestjs-distributed-lock/core';

/** The core's words on a line in one value: ours, or a mutant of it. */
export type LineRule = Pick<
  typeof Core,
  'withoutExpired' | 'applyClaim' | 'findReadyWaiters' | 'createRefusal' | 'withRenewal' | 'withoutOwner'
>;

/** How much an owner wants whose name ends like this, in the words of the model. */
export interface Kind {
  readonly suffix: string;
  readonly permits: number;
  readonly limit: number;
}

export interface Bounds {
  readonly longest: number;
  readonly arrivals: number;
  readonly ticks: number;
}

/** A moment of one key, and how the world came there. */
export interface World {
  readonly line: Line;
  readonly now: number;
  readonly came: number;
  readonly lastToken: bigint;
  /** When each who waits asks next by itself. */
  readonly alarms: ReadonlyMap<string, number>;
  readonly by: string;
  readonly from?: World;
}

/** Leases, and places of those who wait, end after two ticks unless they ask. */
const LASTS = 2;
const AT_ONCE = 0;
const SAYS = '{"host":"somewhere","pid":1}';

/** Clients of one key who come, ask, renew, leave and fall silent, in any order. */
export class LineModel {
  constructor(
    private readonly rule: LineRule,
    readonly kinds: readonly Kind[],
    private readonly bounds: Bounds,
  ) {}

  readonly #kindOf = new Map<string, Kind>();

  readonly first: World = { line: [], now: 1, came: 0, lastToken: 0n, alarms: new Map(), by: 'an empty line' };

  /** All that may happen next. */
  *after(world: World): Generator<World> {
    const { longest, arrivals, ticks } = this.bounds;
    const line = this.#seen(world);
    if (world.came < arrivals && line.length < longest) {
      for (const { suffix } of this.kinds)
        yield { ...this.#asked(world, `${world.came}${suffix}`), came: world.came + 1 };
    }
    for (const { owner, token } of line) {
      yield this.#asked(world, owner);
      yield this.#swapped(world, this.rule.withoutOwner(line, owner), `${owner} leaves`);
      if (token !== undefined) yield this.#renewed(world, owner);
    }
    if (world.now <= ticks) yield { ...world, now: world.now + 1, by: 'time passes', from: world };
  }

  /** Those who have not ended, in the model's own words. */
  living({ line, now }: World): Line {
    return line.filter(({ until }) => until > now);
  }

  kindOf(owner: string): Kind {
    const known = this.#kindOf.get(owner);
    if (known) return known;
    const kind = this.kinds.find(({ suffix }) => owner.replace(/^\d+/u, '') === suffix);
    if (!kind) throw new Error(`nobody of this world is ${owner}`);
    this.#kindOf.set(owner, kind);
    return kind;
  }

  /** The rule, in the model's own words: all who came before, inside or not, leave enough. */
  fits(line: Line, at: number): boolean {
    const { limit } = this.kindOf(line[at]?.owner ?? '');
    return line.slice(0, at + 1).reduce((sum, { owner }) => sum + this.kindOf(owner).permits, 0) <= limit;
  }

  /** The sight of a store. */
  #seen({ line, now }: World): Line {
    return this.rule.withoutExpired(line, now);
  }

  #asked(world: World, owner: string): World {
    const { now, lastToken } = world;
    const entry: LineEntry = { owner, until: now + LASTS, description: SAYS };
    const { line, granted } = this.rule.applyClaim(this.#seen(world), entry, now + LASTS, lastToken + 1n);
    const next = this.#swapped(world, line, `${owner} asks`);
    if (granted) {
      const isLater = granted.token > lastToken;
      return { ...next, lastToken: isLater ? granted.token : lastToken, alarms: without(next.alarms, owner) };
    }
    const { retryAfterMs } = this.rule.createRefusal(line, owner, now);
    return { ...next, alarms: new Map(next.alarms).set(owner, now + (retryAfterMs ?? LASTS)) };
  }

  #renewed(world: World, owner: string): World {
    const line = this.rule.withRenewal(this.#seen(world), owner, world.now + LASTS);
    return this.#swapped(world, line ?? [], `${owner} renews`);
  }

  /** A store tells those who would get in by asking. */
  #swapped(world: World, line: Line, by: string): World {
    const alarms = new Map(world.alarms);
    for (const owner of alarms.keys()) if (line.every((entry) => entry.owner !== owner)) alarms.delete(owner);
    for (const owner of this.rule.findReadyWaiters(line)) alarms.set(owner, AT_ONCE);
    return { ...world, line, alarms, by, from: world };
  }
}

function without(alarms: World['alarms'], owner: string): World['alarms'] {
  return new Map([...alarms].filter(([other]) => other !== owner));
}
