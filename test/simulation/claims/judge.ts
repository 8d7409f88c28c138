import { parseClaim, isExclusive } from 'nestjs-distributed-lock/core';
import type { Holding, Moment, Schedule, Sight } from './moments.js';

/** How far a placement may differ from the rule of the nodes. */
export interface Likeness {
  /** Also where claims have more than one limit. Otherwise it may let in fewer. */
  readonly ofMixedLimits: boolean;
  /** Also while some of those who wait are silent. */
  readonly whileSilent: boolean;
  /** Also before all who wait have asked. */
  readonly whileOpen: boolean;
}

/** Likeness of a line that lets nobody in before it asks: it may never differ. */
export const EVERYWHERE: Likeness = { ofMixedLimits: true, whileSilent: true, whileOpen: true };

const names = (holdings: readonly Holding[]): string[] => holdings.map(({ owner }) => owner).toSorted();

/** Returns the first mistake in what a placement showed after each moment. `undefined`: there is none. */
export function judge(schedule: Schedule, sights: readonly Sight[], likeness: Likeness): string | undefined {
  const tokens = new Map<string, bigint>();
  let before: readonly Holding[] = [];
  for (const [at, moment] of schedule.moments.entries()) {
    const sight = sights[at];
    if (!sight) return `nothing is seen after step ${at}`;
    const wrong =
      tooMany(sight) ??
      untold(moment, sight, before) ??
      oldToken(sight, tokens) ??
      unlike(schedule, moment, sight, likeness);
    if (wrong !== undefined) return `step ${at}: ${wrong}`;
    before = sight.holdings;
  }
  return undefined;
}

function unlike(
  { isMixed, hasSilence }: Schedule,
  moment: Moment,
  sight: Sight,
  { ofMixedLimits, whileSilent, whileOpen }: Likeness,
): string | undefined {
  if (hasSilence && !whileSilent) return undefined;
  if (isMixed && !ofMixedLimits) return more(moment, sight);
  if (sight.answer !== moment.answer) return `was answered ${sight.answer}, not ${moment.answer}`;
  return moment.isOpen && !whileOpen ? more(moment, sight) : different(moment, sight);
}

function tooMany({ holdings }: Sight): string | undefined {
  const claims = holdings.map(({ owner }) => parseClaim(owner));
  const taken = claims.reduce((sum, { permits }) => sum + permits, 0);
  const isOver = taken > Math.max(0, ...claims.map(({ limit }) => limit));
  const isShared = holdings.length > 1 && holdings.some(({ owner }) => isExclusive(owner));
  return isOver || isShared ? `too many have the key: ${names(holdings).join(' ')}` : undefined;
}

/** Returns a mistake when an owner was let in by what another one does, and was not told. */
function untold({ step }: Moment, { holdings, wasTold }: Sight, before: readonly Holding[]): string | undefined {
  if (step.does !== 'ask' && step.does !== 'release') return undefined;
  const known = new Set(names(before)).add(step.owner);
  const sleeper = holdings.find(({ owner }) => !known.has(owner) && !wasTold(owner));
  return sleeper && `${sleeper.owner} has the key and was not told`;
}

/** Each new token is greater than all before it, and stays its owner's. */
function oldToken({ holdings }: Sight, tokens: Map<string, bigint>): string | undefined {
  const last = [...tokens.values()].reduce((most, token) => (token > most ? token : most), 0n);
  for (const { owner, token } of holdings) {
    const known = tokens.get(owner);
    if (token === undefined || token === known) continue;
    if (known !== undefined || token <= last) return `${owner} has the token ${token} after ${known ?? last}`;
    tokens.set(owner, token);
  }
  return undefined;
}

function more({ holdings }: Moment, sight: Sight): string | undefined {
  const stranger = names(sight.holdings).find((owner) => !names(holdings).includes(owner));
  return stranger === undefined ? undefined : `${stranger} should not have the key`;
}

function different({ holdings }: Moment, sight: Sight): string | undefined {
  const [expected, seen] = [names(holdings).join(' '), names(sight.holdings).join(' ')];
  if (expected !== seen) return `those who have the key are (${seen}), not (${expected})`;
  const wrong = holdings.find(({ owner, left }) => {
    const shown = sight.holdings.find((one) => one.owner === owner);
    return left !== undefined && shown?.left !== left;
  });
  return wrong && `the time of ${wrong.owner} is not ${wrong.left}`;
}
