import { groupBy } from './group-by.js';
import type { Operation } from './history.js';

/** One successful acquire and what became of it. */
export interface Grant {
  readonly acquire: Operation & { readonly ok: bigint };
  /** Absent: never released, as far as is known. A failed release is none. */
  readonly release?: Operation;
  /** The last instant at which the holder surely believed that it held the key; at least the acquire's return. */
  readonly believedUntil: bigint;
}

/**
 * The grants in a history, per key. An acquire with an unknown outcome is taken not to have happened, which is always
 * open to choose and excuses the most.
 */
export function grantsByKey(history: readonly Operation[]): Map<string, Grant[]> {
  const byOwner = groupBy(history, ({ key, owner }) => JSON.stringify([key, owner]));
  const grants = Array.from(byOwner.values(), grantOf).filter((grant) => grant !== undefined);
  return groupBy(grants, ({ acquire }) => acquire.key);
}

function grantOf(operations: readonly Operation[]): Grant | undefined {
  const acquire = operations.find(isGranted);
  if (acquire === undefined) return undefined;
  const release = operations.find(({ op, fail }) => op === 'release' && fail === undefined);
  const held = operations.filter(({ op }) => op === 'held').map(({ inv }) => inv);
  const lost = operations.some(({ op }) => op === 'lost');
  const untilRelease = held.length === 0 && !lost && release !== undefined ? [release.inv] : [];
  const believedUntil = [...held, ...untilRelease].reduce((latest, at) => (at > latest ? at : latest), acquire.ok);
  return { acquire, believedUntil, ...(release !== undefined && { release }) };
}

function isGranted(operation: Operation): operation is Grant['acquire'] {
  return operation.op === 'acquire' && operation.ok !== undefined;
}
