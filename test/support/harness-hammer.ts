import { type AcquireOptions, LockError, type LockHandle, type LockService } from 'nestjs-distributed-lock/core';
import { randomInt, randomUUID } from 'node:crypto';
import { FencedResource } from './fenced-resource.js';
import { HistoryRecorder } from './history.js';
import { reads, wantedBy, wantsAll } from './wanted.js';

export interface Hammering {
  readonly keys: readonly string[];
  readonly ms: number;
  /** Each visit wants one of these, see `wantedBy`. @default all of the key */
  readonly claims?: readonly string[];
  readonly callers: number;
  /** Whether locks are passed on, and one of the callers adopts them. @default false */
  readonly transfers?: boolean;
  readonly ttlMs: number;
  /** @default ms */
  readonly waitMs?: number;
  /** Nothing happens to anybody that would excuse an error. @default false */
  readonly strict?: boolean;
  /** Where to write the history, as which process. */
  readonly history: string;
  readonly proc: string;
  /** The URL of the fenced resource that the locks protect. */
  readonly resource: string;
}

/** How long a caller does something under its lock, and how often it looks whether it still has it. */
const VISIT_STEPS = 4;
const STEP_MS = 2;
/** Begins the owners of adopted locks in the history. */
export const ADOPTER = 'adopter-';
/** One of so many visits ends with a transfer. */
const ONE_PASSED_OF = 5;

/** Takes and gives back locks for a while, doing what a careful holder does and writing down all of it. */
export async function hammer(locks: LockService, how: Hammering): Promise<number> {
  const history = new HistoryRecorder(how.history, how.proc);
  using resource = new FencedResource(how.resource);
  const end = performance.now() + how.ms;
  let grants = 0;
  const visit = async (key: string, claim: string, ask: () => Promise<LockHandle>, name = ''): Promise<void> => {
    const acquire = history.invoke({ key, op: 'acquire', owner: name + randomUUID() + claim });
    try {
      const lock = await ask();
      const at = process.hrtime.bigint();
      // One who was stopped right after the grant never believed in it: what became of the acquire stays unknown.
      if (lock.isHeld) acquire.ok({ token: lock.fencingToken, at });
      grants += 1;
      await visitUnder(lock, acquire.owner, claim, { history, resource, how });
    } catch (error) {
      // Nothing but "somebody else has it" is sure not to have happened, and even that is only so after the clean-up.
      if (how.strict === true || !(error instanceof LockError)) throw error;
    }
  };
  const times = { ttlMs: how.ttlMs, waitMs: how.waitMs ?? how.ms };
  const caller = async (place: number): Promise<void> => {
    for (let count = place; performance.now() < end; count += 1) {
      const key = how.keys[count % how.keys.length] ?? 'key';
      const claim = how.claims?.[randomInt(how.claims.length)] ?? '';
      await visit(key, claim, () => locks.acquire(key, { ...times, ...optionsFor(claim) }));
    }
  };
  const adopter = async (): Promise<void> => {
    while (performance.now() < end) {
      const passed = await resource.takePassed();
      if (passed) await visit(passed.key, passed.claim, () => locks.adopt(passed.ticket, times), ADOPTER);
      else await new Promise((resolve) => setTimeout(resolve, STEP_MS));
    }
  };
  const adopters = how.transfers === true ? [adopter()] : [];
  await Promise.all([...adopters, ...Array.from({ length: how.callers }, (_, place) => caller(place))]);
  history.close();
  return grants;
}

function optionsFor(claim: string): AcquireOptions {
  if (wantsAll(claim)) return {};
  const { permits, of } = wantedBy(claim);
  return reads(claim) ? { mode: 'shared' } : { limit: of, permits };
}

interface Witnesses {
  readonly history: HistoryRecorder;
  readonly resource: FencedResource;
  readonly how: Hammering;
}

async function visitUnder(lock: LockHandle, owner: string, claim: string, witnesses: Witnesses): Promise<void> {
  const { history, resource, how } = witnesses;
  const { key } = lock;
  const { proc } = how;
  for (let step = 0; step < VISIT_STEPS && believes(lock, owner, history); step += 1) {
    if (step === 1) await resource.write({ key, token: lock.fencingToken, owner, proc });
    else await new Promise((resolve) => setTimeout(resolve, STEP_MS));
  }
  const release = history.invoke({ key, op: 'release', owner });
  if (how.transfers !== true || reads(claim) || !lock.isHeld || randomInt(ONE_PASSED_OF) > 0) {
    await lock.release();
    return release.ok();
  }
  const ticket = await lock.transfer({ withinMs: 3 * how.ttlMs });
  release.ok();
  await resource.pass({ key, claim, ticket });
}

/** A belief is noted with a time from before it was asked for: the process may be stopped right after. */
function believes(lock: LockHandle, owner: string, history: HistoryRecorder): boolean {
  const at = process.hrtime.bigint();
  const { isHeld, key } = lock;
  history.mark({ key, op: isHeld ? 'held' : 'lost', owner }, at);
  return isHeld;
}
