import type * as Core from 'nestjs-distributed-lock/core';
import type { Line, LineStorage, StoredLine as Reading, LineUpdate } from 'nestjs-distributed-lock/core';
import type { Schedule, Sight, Step } from './moments.js';

/** Ours, or a mutant's. */
export type LineCore = Pick<typeof Core, 'withoutExpired' | 'ClaimLeases' | 'findReadyWaiters'>;

const NOW = 1_000;
const KEY = 'k';
const METADATA = { host: 'somewhere', pid: 1 };

/** A cell in memory. Its clock stands still: time passes by moving the ends of leases. */
class Cell implements LineStorage<Line> {
  line: Line = [];
  readonly told = new Set<string>();
  #lastToken = 0n;

  async read(): Promise<Reading<Line>> {
    return { line: this.line, now: NOW, nextToken: this.#lastToken + 1n, version: this.line };
  }

  async swap(_key: string, place: Line, { line, token, ready }: LineUpdate): Promise<boolean> {
    if (place !== this.line) return false;
    this.line = line;
    if (token !== undefined) this.#lastToken = token;
    for (const owner of ready) this.told.add(owner);
    return true;
  }
}

/** The state that the line in a value shows after each step. */
export async function sightsOfLine(core: LineCore, { moments }: Schedule): Promise<Sight[]> {
  const cell = new Cell();
  const leases = new core.ClaimLeases(cell);
  const sights: Sight[] = [];
  for (const { step } of moments) {
    const answer = await take(leases, cell, step);
    const told = new Set(cell.told);
    sights.push({
      ...(answer === undefined ? {} : { answer }),
      holdings: holdingsIn(core, cell),
      wasTold: (owner) => told.has(owner),
    });
  }
  return sights;
}

function holdingsIn({ withoutExpired, findReadyWaiters }: LineCore, cell: Cell): Sight['holdings'] {
  const line = withoutExpired(cell.line, NOW);
  const mayEnter = findReadyWaiters(line);
  return line.flatMap(({ owner, until, token }) => {
    if (token !== undefined) return [{ owner, token, left: until - NOW }];
    return mayEnter.includes(owner) ? [{ owner }] : [];
  });
}

async function take(leases: Core.ClaimLeases<Line>, cell: Cell, step: Step): Promise<boolean | undefined> {
  switch (step.does) {
    case 'ask':
      return (await leases.tryAcquire(KEY, step.owner, step.lasts, METADATA, step.waits)).acquired;
    case 'renew':
      return leases.renew(KEY, step.owner, step.lasts);
    case 'release':
      return leases.release(KEY, step.owner);
    case 'die':
      cell.line = cell.line.map((entry) => (entry.owner === step.owner ? { ...entry, until: NOW } : entry));
      break;
    case 'silence':
      break;
    case 'pass':
      cell.line = cell.line.map((entry) =>
        entry.token === undefined ? entry : { ...entry, until: entry.until - step.units },
      );
      break;
    case 'revoke':
      cell.line = cell.line.filter(({ token }) => token === undefined);
  }
  return undefined;
}
