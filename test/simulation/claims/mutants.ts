import type { Mutant } from '../mutants.js';

/** Cores with one mistake about the line in a value. */
export const OF_THE_LINE: readonly Mutant[] = [
  {
    mistake: 'lets in one more than fit',
    file: 'contract/claim.ts',
    from: 'return taken <= claim.of;',
    to: 'return taken - 1 <= claim.of;',
  },
  {
    mistake: 'keeps the last permit back',
    file: 'contract/claim.ts',
    from: 'return taken <= claim.of;',
    to: 'return taken <= claim.of && (taken < claim.of || claim.of > 3);',
  },
  {
    mistake: 'does not count those who wait',
    file: 'line/line.ts',
    from: 'fits(claimOf(owner), before.map(claimIn))',
    to: 'fits(claimOf(owner), before.filter(({ token }) => token !== undefined).map(claimIn))',
  },
  {
    mistake: 'renews all who have the key',
    file: 'line/line.ts',
    from: 'line.with(at, { ...present, until })',
    to: 'line.map((entry) => ({ ...entry, until }))',
  },
  {
    mistake: 'keeps those who have ended',
    file: 'line/line.ts',
    from: 'line.filter(({ until }) => until > now)',
    to: 'line.filter(({ until }) => until >= now)',
  },
  {
    mistake: 'lets all go with the first who leaves',
    file: 'line/line.ts',
    from: 'line.filter((entry) => entry.owner !== owner) : line',
    to: '[] : line',
  },
  {
    mistake: 'puts who asks again at the end',
    file: 'line/line.ts',
    from: 'at < 0 ? [...line, entry] : line.with(at, entry)',
    to: 'at < 0 ? [...line, entry] : [...line.toSpliced(at, 1), entry]',
  },
  {
    mistake: 'gives a holder who asks again another token',
    file: 'line/line.ts',
    from: 'token: present?.token ?? nextToken',
    to: 'token: nextToken',
  },
  {
    mistake: 'tells only the first who fits',
    file: 'line/line.ts',
    from: '.map(({ owner }) => owner);\n}\n\n/** Returns the answer',
    to: '.map(({ owner }) => owner)\n    .slice(0, 1);\n}\n\n/** Returns the answer',
  },
  {
    mistake: 'has a waiter wait for the last of those before it to end',
    file: 'line/line.ts',
    from: 'Math.min(...others.map(({ until }) => until))',
    to: 'Math.max(...others.map(({ until }) => until))',
  },
];

/** Cores with one mistake about the line of nodes. */
export const OF_THE_NODES: readonly Mutant[] = [
  {
    mistake: 'counts one permit too few',
    file: 'contract/claim.ts',
    from: 'return taken <= claim.of;',
    to: 'return taken - 1 <= claim.of;',
  },
  {
    mistake: 'has a reader watch the first writer, not the nearest',
    file: 'line/obstacle.ts',
    from: 'before.findLastIndex(',
    to: 'before.findIndex(',
  },
  {
    mistake: 'has all who wait for permits watch the one before them',
    file: 'line/obstacle.ts',
    from: "if (!nearest) return { until: 'departure' };",
    to: "if (!nearest) return { until: 'end', at: before.length - 1 };",
  },
];

/** Cores with one mistake about what is done with a line. */
export const OF_THE_LEASES: readonly Mutant[] = [
  {
    mistake: 'does not say who may get in',
    file: 'line/claim-leases.ts',
    from: 'ready: findReadyWaiters(line) }',
    to: 'ready: [] }',
  },
  {
    mistake: 'sets the last token back to that of who asks again',
    file: 'line/claim-leases.ts',
    from: '...(token === nextToken ? { token } : {})',
    to: 'token',
  },
  {
    mistake: 'puts those in line who do not wait',
    file: 'line/claim-leases.ts',
    from: 'mayEnter ? now + WAITER_MS : undefined',
    to: 'now + WAITER_MS',
  },
  {
    mistake: 'renews a lease that has ended',
    file: 'line/claim-leases.ts',
    from: 'line: withoutExpired(seen.line, seen.now) }',
    to: 'line: seen.line }',
  },
  {
    mistake: 'renews the place of one who waits',
    file: 'line/line.ts',
    from: 'return present?.token === undefined ? undefined :',
    to: 'return present === undefined ? undefined :',
  },
  {
    mistake: 'says that who waited had the key',
    file: 'line/line.ts',
    from: 'entry.owner === owner && entry.token !== undefined',
    to: 'entry.owner === owner',
  },
];

/** Cores with one mistake about readers who join a lease. */
export const OF_JOINED_READERS: readonly Mutant[] = [
  {
    mistake: 'has readers join for as long as they come',
    file: 'holding/joinable-holds.ts',
    from: 'if (isExhausted(',
    to: 'if (false && isExhausted(',
  },
  {
    mistake: 'tells one reader of a loss',
    file: 'holding/hold.ts',
    from: 'this.#loss ??= new AbortController()',
    to: 'this.#loss = new AbortController()',
  },
  {
    mistake: 'frees the key with the first reader who leaves',
    file: 'holding/hold.ts',
    from: '    this.#entries += 1;\n    this.#joined += 1;',
    to: '    this.#joined += 1;',
  },
];

/** Cores with one mistake about changes that meet. */
export const OF_CONTENTION: readonly Mutant[] = [
  {
    mistake: 'takes a swap for done that was refused',
    file: 'line/claim-leases.ts',
    from: 'if (await this.cell.swap(key, seen.place, { line, token, ready: findReadyWaiters(line) })) return result;',
    to: 'await this.cell.swap(key, seen.place, { line, token, ready: findReadyWaiters(line) });\n      return result;',
  },
  {
    mistake: 'stands in line once more after a lost answer',
    file: 'line/line.ts',
    from: 'const at = line.findIndex((entry) => entry.owner === owner);\n  const present = line[at];\n  const put',
    to: 'const at = -1;\n  const present: LineEntry | undefined = undefined;\n  const put',
  },
];
