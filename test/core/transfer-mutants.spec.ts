import * as present from 'nestjs-distributed-lock/core';
import type { StoredLine, LineUpdate, LineStorage } from 'nestjs-distributed-lock/core';
import { MemoryLeaseStore } from 'nestjs-distributed-lock/memory';
import { coreOf, mutantsOf } from '../simulation/mutants.js';

/** Cores with one mistake about transfers. */
const MUTANTS = mutantsOf({
  'acquiring/adoption.ts': {
    'gives the adopter the token of the former holder': ['earlierHandOffs + 1);', 'earlierHandOffs);'],
  },
  'holding/holds.ts': {
    'hands an adopted lease to the next caller, too': [
      'if (hold.isShared || hold.isAdopted) return false;',
      'if (hold.isShared) return false;',
    ],
  },
  'holding/lease-releases.ts': {
    'gives a ticket for a lock that was taken away': [
      'if (!(await watchdog.lease.passOn(ms)))',
      'if ((await watchdog.lease.passOn(ms)) === undefined)',
    ],
  },
  'line/line.ts': {
    'takes the lease of any holder': [
      'const index = line.findIndex((entry) => entry.owner === owner);\n  const token',
      'const index = line.findIndex((entry) => entry.owner !== owner);\n  const token',
    ],
  },
  'line/claim-leases.ts': {
    'takes the plain lease of any holder': ['if (lease?.owner === transferred.owner)', 'if (lease)'],
  },
});

describe('a core that', () => {
  it('is as it should be has no violation', async () => {
    await expect(violationsOf(present)).resolves.toEqual([]);
  });

  it.each(MUTANTS)('$mistake is noticed', async (mutant) => {
    const mutated = await coreOf(mutant, mutant.mistake.replaceAll(/\W/gu, '-'));
    expect(await violationsOf(mutated)).not.toEqual([]);
  });
});

async function violationsOf(core: typeof present): Promise<string[]> {
  const locks = await violationsOfService(core).catch((error: unknown) => [String(error)]);
  return [...locks, ...(await violationsOfLine(core))];
}

async function violationsOfService({ LockService }: typeof present): Promise<string[]> {
  const violations: string[] = [];
  const store = new MemoryLeaseStore();
  const locks = new LockService(store);
  const lock = await locks.acquire('k');
  const adopted = await locks.adopt(await lock.transfer({ withinMs: 5_000 }));
  if (adopted.fencingToken <= lock.fencingToken) violations.push('the token did not grow');
  const first = locks.acquire('k', { waitMs: 1_000 });
  const second = locks.acquire('k', { waitMs: 1_000 });
  await adopted.release();
  const next = await first;
  if (next.fencingToken >> 11n === adopted.fencingToken >> 11n) violations.push('the lease stayed in this process');
  await next.release();
  await (await second).release();
  const lost = await locks.acquire('k');
  store.revoke('k');
  const ticket = await lost.transfer({ withinMs: 5_000 }).catch(() => undefined);
  if (ticket !== undefined) violations.push('a ticket for nothing');
  await locks.close();
  return violations;
}

async function violationsOfLine({ ClaimLeases }: typeof present): Promise<string[]> {
  const violations: string[] = [];
  const adopted = { owner: 'new', ttlMs: 1_000, metadata: { host: 'h', pid: 1 } };
  for (const owner of ['stranger', 'former']) {
    const line = [{ owner: 'former', until: 5_000, token: 7n, description: '' }];
    for (const held of [{ line }, { line: [], lease: { owner: 'former', leftMs: 5_000 } }]) {
      const attempt = await new ClaimLeases(new OneLine(held)).adopt('k', { owner, fencingToken: 7n }, adopted);
      if (attempt.acquired !== (owner === 'former')) violations.push(`${owner}: ${attempt.acquired}`);
    }
  }
  return violations;
}

class OneLine implements LineStorage<number> {
  constructor(private readonly held: Pick<StoredLine<number>, 'line' | 'lease'>) {}

  async read(): Promise<StoredLine<number>> {
    return { now: 0, nextToken: 8n, version: 1, ...this.held };
  }

  async swap(_key: string, _version: number, _next: LineUpdate): Promise<boolean> {
    return true;
  }
}
