import type { Mutant } from '../mutants.js';

/** Cores with one mistake about the line in a value. */
export const OF_THE_LINE: readonly Mutant[] = [
  {
    mistake: 'lets in one more than fit',
    file: 'contract/claim.ts',
    from: 'return permitCount <= claim.limit;',
    to: 'return permitCount - 1 <= claim.limit;',
  },
  {
    mistake: 'keeps the last permit back',
    file: 'contract/claim.ts',
    from: 'return permitCount <= claim.limit;',
    to: 'return permitCount <= claim.limit && (permitCount < claim.limit || claim.limit > 3);',
  },
  {
    mistake: 'does not count those who wait',
    file: 'line/line.ts',
    from: 'fits(parseClaim(owner), entriesAhead.map(claimOfEntry))',
    to: 'fits(parseClaim(owner), entriesAhead.filter(({ token }) => token !== undefined).map(claimOfEntry))',
  },
  {
    mistake: 'renews all who have the key',
    file: 'line/line.ts',
    from: 'line.with(index, { ...ownEntry, until })',
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
    from: 'index < 0 ? [...line, entry] : line.with(index, entry)',
    to: 'index < 0 ? [...line, entry] : [...line.toSpliced(index, 1), entry]',
  },
  {
    mistake: 'gives a holder who asks again another token',
    file: 'line/line.ts',
    from: 'token: ownEntry?.token ?? nextToken',
    to: 'token: nextToken',
  },
  {
    mistake: 'tells only the first who fits',
    file: 'line/line.ts',
    from: '.map(({ owner }) => owner);\n}\n\n/**\n * Returns the refusal',
    to: '.map(({ owner }) => owner)\n    .slice(0, 1);\n}\n\n/**\n * Returns the refusal',
  },
  {
    mistake: 'has a waiter wait for the last of those before it to end',
    file: 'line/line.ts',
    from: 'Math.min(...blockingEntries.map(({ until }) => until))',
    to: 'Math.max(...blockingEntries.map(({ until }) => until))',
  },
];

/** Cores with one mistake about the line of nodes. */
export const OF_THE_NODES: readonly Mutant[] = [
  {
    mistake: 'counts one permit too few',
    file: 'contract/claim.ts',
    from: 'return permitCount <= claim.limit;',
    to: 'return permitCount - 1 <= claim.limit;',
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
    from: "if (!nearestObstacle) return { until: 'departure' };",
    to: "if (!nearestObstacle) return { until: 'end', at: before.length - 1 };",
  },
];

/** Cores with one mistake about what is done with a line. */
export const OF_THE_LEASES: readonly Mutant[] = [
  {
    mistake: 'does not say who may get in',
    file: 'line/line-changes.ts',
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
    from: 'mayWaitInLine ? now + uncertaintyMs + WAITER_TTL_MS : undefined',
    to: 'now + WAITER_TTL_MS',
  },
  {
    mistake: 'renews a lease that has ended',
    file: 'line/line-changes.ts',
    from: 'line: withoutExpired(storedLine.line, storedLine.now) }',
    to: 'line: storedLine.line }',
  },
  {
    mistake: 'renews the place of one who waits',
    file: 'line/line.ts',
    from: 'return ownEntry?.token === undefined ? undefined :',
    to: 'return ownEntry === undefined ? undefined :',
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
    from: 'if (\n      areHandOffsExhausted(',
    to: 'if (\n      false && areHandOffsExhausted(',
  },
  {
    mistake: 'tells one reader of a loss',
    file: 'holding/hold.ts',
    from: 'this.#lossController ??= createUnlimitedAbortController()',
    to: 'this.#lossController = createUnlimitedAbortController()',
  },
  {
    mistake: 'frees the key with the first reader who leaves',
    file: 'holding/hold.ts',
    from: '    this.#entryCount += 1;\n    this.#joinCount += 1;',
    to: '    this.#joinCount += 1;',
  },
];

/** Cores with one mistake about changes that meet. */
export const OF_CONTENTION: readonly Mutant[] = [
  {
    mistake: 'takes a swap for done that was refused',
    file: 'line/line-changes.ts',
    from: '(await this.storage.swap(key, storedLine.version, nextLine))) {',
    to: '(await this.storage.swap(key, storedLine.version, nextLine)) !== undefined) {',
  },
  {
    mistake: 'gives one token to two who ask together',
    file: 'line/line-changes.ts',
    from: '[token, nextToken] = [change.token, change.token + 1n]',
    to: 'token = change.token',
  },
  {
    mistake: 'gives tokens that nobody has reserved',
    file: 'line/line-changes.ts',
    from: 'if (isTokenMissing) break;',
    to: '',
  },
  {
    mistake: 'forgets the changes before when several come together',
    file: 'line/line-changes.ts',
    from: 'line = change.line;',
    to: 'line = change.line === line ? line : change.line.slice(-1);',
  },
  {
    mistake: 'stands in line once more after a lost answer',
    file: 'line/line.ts',
    from: 'const index = line.findIndex((entry) => entry.owner === owner);\n  const ownEntry = line[index];\n  const withEntry',
    to: 'const index = -1;\n  const ownEntry: LineEntry | undefined = undefined;\n  const withEntry',
  },
];
