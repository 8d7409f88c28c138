import { wrongIn, wrongStep } from './line-checks.js';
import { type Bounds, type Kind, LineModel, type LineRule, type World } from './line-model.js';

/** How a search ended: after so many states, or in a wrong one. */
export interface Found {
  readonly states: number;
  /** What is wrong, and the shortest way to it. */
  readonly wrong?: string;
}

/** Every world of these clients, those that are reached in few steps first. */
export function exploreLine(rule: LineRule, kinds: readonly Kind[], bounds: Bounds): Found {
  const model = new LineModel(rule, kinds, bounds);
  const seen = new Set([nameOf(model, model.first)]);
  const open = [model.first];
  for (const world of open) {
    for (const next of model.after(world)) {
      const name = nameOf(model, next);
      const isNew = !seen.has(name);
      const wrong = wrongStep(model, next) ?? (isNew ? wrongIn(model, next) : undefined);
      if (wrong !== undefined) return { states: seen.size, wrong: [...wayTo(next), wrong].join('; ') };
      if (!isNew) continue;
      seen.add(name);
      open.push(next);
    }
  }
  return { states: seen.size };
}

/** Equal for worlds from which the same can happen. */
function nameOf(model: LineModel, world: World): string {
  const { now, alarms, came } = world;
  const entries = model.living(world).map(({ owner, until, token }) => {
    const alarm = token === undefined ? Math.max(0, (alarms.get(owner) ?? now) - now) : 'inside';
    return `${model.kindOf(owner).suffix} ${until - now} ${alarm}`;
  });
  return `${came} ${now} ${entries.join()}`;
}

function wayTo(world: World): string[] {
  const way: string[] = [];
  for (let at: World | undefined = world; at; at = at.from) way.unshift(at.by);
  return way;
}
