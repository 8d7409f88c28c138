import type { Line, LineEntry } from 'nestjs-distributed-lock/core';
import type { LineModel, World } from './line-model.js';

const isInside = ({ token }: LineEntry): boolean => token !== undefined;

/** Returns the first mistake in this world. `undefined`: there is none. */
export function wrongIn(model: LineModel, world: World): string | undefined {
  return tooMany(model, world) ?? sleeper(model, world) ?? overtaken(model, world);
}

/** Never more than the largest limit, and who wants all is alone. */
function tooMany(model: LineModel, world: World): string | undefined {
  const kinds = model
    .living(world)
    .filter(isInside)
    .map(({ owner }) => model.kindOf(owner));
  const taken = kinds.reduce((sum, { permits }) => sum + permits, 0);
  if (taken > Math.max(0, ...kinds.map(({ limit }) => limit))) return `${kinds.length} have the key together`;
  return kinds.length > 1 && kinds.some(({ suffix }) => suffix === '') ? 'who wants all is not alone' : undefined;
}

/** Returns a mistake when an owner who fits does not have the key, has not been told, and does not ask by now. */
function sleeper(model: LineModel, world: World): string | undefined {
  const line = model.living(world);
  const at = line.findIndex((entry, i) => {
    const alarm = world.alarms.get(entry.owner) ?? Infinity;
    return !isInside(entry) && model.fits(line, i) && alarm > world.now;
  });
  return at < 0 ? undefined : `${line[at]?.owner} fits and sleeps`;
}

/** With one limit, those inside are the first of the line, and whoever is inside fits. */
function overtaken(model: LineModel, world: World): string | undefined {
  const line = model.living(world);
  const unfit = line.find((entry, i) => isInside(entry) && !model.fits(line, i));
  if (unfit) return `${unfit.owner} has the key and does not fit`;
  const limits = new Set(model.kinds.filter(({ suffix }) => suffix !== '').map(({ limit }) => limit));
  if (limits.size > 1) return undefined;
  const blocked = line.findIndex((_, i) => !model.fits(line, i));
  const later = blocked < 0 ? undefined : line.slice(blocked).find(isInside);
  return later && `${later.owner} has overtaken ${line[blocked]?.owner}`;
}

/**
 * Returns the mistake of the last step: it changed what is another's, or granted a token that is not greater than all
 * before it.
 */
export function wrongStep(model: LineModel, world: World): string | undefined {
  const { from } = world;
  if (!from) return undefined;
  const was = model.living({ ...from, now: world.now });
  const is = model.living(world);
  const [actor = ''] = world.by.split(' ');
  if (!areEqual(others(was, actor), others(is, actor))) return `${actor} has changed what is another's`;
  const [before, after] = [was, is].map((line) => line.find(({ owner }) => owner === actor));
  if (!after) return undefined;
  if (before?.token !== undefined) return before.token === after.token ? undefined : `${actor} has another token`;
  if (isInside(after) !== model.fits(is, is.indexOf(after))) return `${actor} fits, and is refused`;
  return after.token !== undefined && after.token <= from.lastToken ? `the token of ${actor} is an old one` : undefined;
}

function others(line: Line, actor: string): Line {
  return line.filter(({ owner }) => owner !== actor);
}

function areEqual(one: Line, other: Line): boolean {
  return (
    one.length === other.length &&
    one.every(({ owner, until, token }, i) => {
      const same = other[i];
      return owner === same?.owner && until === same.until && token === same.token;
    })
  );
}
