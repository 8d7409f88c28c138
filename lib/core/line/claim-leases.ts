import { randomInt } from 'node:crypto';
import { isExclusive } from '../contract/claim.js';
import { type HolderMetadata, packHolder } from '../contract/holder.js';
import type { LeaseState } from '../contract/key-state.js';
import type { LeaseAttempt, RefusedLease } from '../contract/lease-store.js';
import { pause, systemClock } from '../time/timers.js';
import {
  withoutExpired,
  applyClaim,
  isHolder,
  type Line,
  findReadyWaiters,
  createRefusal,
  withRenewal,
  describeLine,
  withoutOwner,
} from './line.js';
import type { LineCell, CellReading } from './line-cell.js';

/** Maximum number of attempts to change a value that others change meanwhile, with pauses that grow. */
const MAX_ATTEMPTS = 20;
const MAX_PAUSE_MS = 50;

/** Time after which a waiter that no longer asks leaves the line. */
const WAITER_MS = 5_000;
/** Time after which a waiter asks again, at the latest. */
const ASK_MS = 1_000;

/** Maximum length of a line, which is read and written as a whole. Further waiters wait outside of it. */
const MAX_LINE_LENGTH = 1_000;

/** Maximum length of a holder's description, since a line is read and written as a whole. A longer one is left out. */
const MAX_DESCRIPTION_LENGTH = 200;

/** New line of a key, and what its caller is told. */
interface Step<Result> {
  readonly result: Result;
  readonly line: Line;
  readonly token?: bigint;
}

/**
 * Leases of several holders of a key, kept as a line in one value that is compared and swapped. An owner that wants all
 * of a key is in the line, too, once it has found one.
 */
export class ClaimLeases<Place> {
  /** Exclusive owners that are in a line. */
  readonly #exclusive = new Set<string>();

  constructor(
    private readonly cell: LineCell<Place>,
    private readonly maxLineLength = MAX_LINE_LENGTH,
  ) {}

  /** Returns whether the owner's lease is in a line. */
  has(owner: string): boolean {
    return !isExclusive(owner) || this.#exclusive.has(owner);
  }

  /** @param waits whether the owner is put in line, and asks again or releases */
  async tryAcquire(
    key: string,
    owner: string,
    ttlMs: number,
    metadata: HolderMetadata,
    waits: boolean,
  ): Promise<LeaseAttempt> {
    if (isExclusive(owner)) this.#exclusive.add(owner);
    const said = packHolder(metadata);
    const description = said.length > MAX_DESCRIPTION_LENGTH ? '' : said;
    const attempt = await this.#change<LeaseAttempt>(key, true, ({ line, now, aheadMs = 0, nextToken, lease }) => {
      if (lease && lease.owner !== owner) return { line, result: refusedBy(lease) };
      const isInLine = line.some((entry) => entry.owner === owner);
      const mayEnter = waits && (isInLine || line.length < this.maxLineLength);
      const asked = applyClaim(
        line,
        { owner, until: now + aheadMs + ttlMs, description },
        mayEnter ? now + WAITER_MS : undefined,
        nextToken,
      );
      if (asked.granted) {
        const { token } = asked.granted;
        const result = { acquired: true, fencingToken: token } as const;
        return { line: asked.line, result, ...(token === nextToken ? { token } : {}) };
      }
      const refused = createRefusal(asked.line, owner, now);
      const retryAfterMs = Math.min(refused.retryAfterMs ?? ASK_MS, ASK_MS);
      const result = { ...refused, retryAfterMs, staysInLine: waits };
      return { line: wasNotedLately(line, owner, now) ? line : asked.line, result };
    });
    if (!attempt.acquired && attempt.staysInLine !== true) this.#exclusive.delete(owner);
    return attempt;
  }

  renew(key: string, owner: string, ttlMs: number): Promise<boolean> {
    return this.#change(key, false, ({ line, now, aheadMs = 0 }) => {
      const next = withRenewal(line, owner, now + aheadMs + ttlMs);
      return { line: next ?? line, result: next !== undefined };
    });
  }

  async release(key: string, owner: string): Promise<boolean> {
    const wasHeld = await this.#change(key, false, ({ line }) => ({
      line: withoutOwner(line, owner),
      result: isHolder(line, owner),
    }));
    this.#exclusive.delete(owner);
    return wasHeld;
  }

  async isHeldBy(key: string, owner: string): Promise<boolean> {
    const { line, now } = await this.cell.read(key, false);
    return isHolder(withoutExpired(line, now), owner);
  }

  /** Resolves to the state of the line, or to `undefined` where the key has none. */
  async look(key: string): Promise<LeaseState | undefined> {
    const { line, now } = await this.cell.read(key, false);
    return line.length > 0 ? describeLine(withoutExpired(line, now), now) : undefined;
  }

  async #change<Result>(
    key: string,
    grants: boolean,
    step: (sight: CellReading<Place>) => Step<Result>,
  ): Promise<Result> {
    for (let round = 0; round < MAX_ATTEMPTS; round += 1) {
      const seen = await this.cell.read(key, grants);
      const sight = { ...seen, line: withoutExpired(seen.line, seen.now) };
      const { line, token, result } = step(sight);
      if (line === sight.line) return result;
      if (await this.cell.swap(key, seen.place, { line, token, ready: findReadyWaiters(line) })) return result;
      await pause(systemClock, randomInt(Math.min(2 ** round + 1, MAX_PAUSE_MS)));
    }
    throw new Error(`others changed the line of the key ${MAX_ATTEMPTS} times meanwhile`);
  }
}

function wasNotedLately(line: Line, owner: string, now: number): boolean {
  return line.some((entry) => entry.owner === owner && entry.until > now + WAITER_MS / 2);
}

function refusedBy({ leftMs, holder }: NonNullable<CellReading<unknown>['lease']>): RefusedLease {
  return { acquired: false, retryAfterMs: leftMs, ...(holder ? { holder } : {}) };
}
