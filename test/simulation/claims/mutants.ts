import { mutantsOf } from '../mutants.js';

/** Cores with one mistake about the line in a value. */
export const OF_THE_LINE = mutantsOf({
  'contract/claim.ts': {
    'lets in one more than fit': ['return permitCount <= claim.limit;', 'return permitCount - 1 <= claim.limit;'],
    'keeps the last permit back': [
      'return permitCount <= claim.limit;',
      'return permitCount <= claim.limit && (permitCount < claim.limit || claim.limit > 3);',
    ],
  },
  'line/line.ts': {
    'does not count those who wait': [
      'fits(parseClaim(owner), entriesAhead.map(claimOfEntry))',
      'fits(parseClaim(owner), entriesAhead.filter(({ token }) => token !== undefined).map(claimOfEntry))',
    ],
    'renews all who have the key': [
      'line.with(index, { ...ownEntry, until })',
      'line.map((entry) => ({ ...entry, until }))',
    ],
    'keeps those who have ended': [
      'line.filter(({ until }) => until > now)',
      'line.filter(({ until }) => until >= now)',
    ],
    'lets all go with the first who leaves': ['line.filter((entry) => entry.owner !== owner) : line', '[] : line'],
    'puts who asks again at the end': [
      'index < 0 ? [...line, entry] : line.with(index, entry)',
      'index < 0 ? [...line, entry] : [...line.toSpliced(index, 1), entry]',
    ],
    'gives a holder who asks again another token': ['token: ownEntry?.token ?? nextToken', 'token: nextToken'],
    'tells only the first who fits': [
      '.map(({ owner }) => owner);\n}\n\n/**\n * Returns the refusal',
      '.map(({ owner }) => owner)\n    .slice(0, 1);\n}\n\n/**\n * Returns the refusal',
    ],
    'has a waiter wait for the last of those before it to end': [
      'Math.min(...blockingEntries.map(({ until }) => until))',
      'Math.max(...blockingEntries.map(({ until }) => until))',
    ],
  },
});

/** Cores with one mistake about the line of nodes. */
export const OF_THE_NODES = mutantsOf({
  'contract/claim.ts': {
    'counts one permit too few': ['return permitCount <= claim.limit;', 'return permitCount - 1 <= claim.limit;'],
  },
  'line/obstacle.ts': {
    'has a reader watch the first writer, not the nearest': ['before.findLastIndex(', 'before.findIndex('],
    'has all who wait for permits watch the one before them': [
      "if (!nearestObstacle) return { until: 'departure' };",
      "if (!nearestObstacle) return { until: 'end', at: before.length - 1 };",
    ],
  },
});

/** Cores with one mistake about what is done with a line. */
export const OF_THE_LEASES = mutantsOf({
  'line/line-changes.ts': {
    'does not say who may get in': ['ready: findReadyWaiters(line) }', 'ready: [] }'],
    'renews a lease that has ended': [
      'line: withoutExpired(storedLine.line, storedLine.now) }',
      'line: storedLine.line }',
    ],
  },
  'line/claim-leases.ts': {
    'sets the last token back to that of who asks again': ['...(token === nextToken ? { token } : {})', 'token'],
    'puts those in line who do not wait': [
      'mayWaitInLine ? now + uncertaintyMs + WAITER_TTL_MS : undefined',
      'now + WAITER_TTL_MS',
    ],
  },
  'line/line.ts': {
    'renews the place of one who waits': [
      'return ownEntry?.token === undefined ? undefined :',
      'return ownEntry === undefined ? undefined :',
    ],
    'says that who waited had the key': ['entry.owner === owner && entry.token !== undefined', 'entry.owner === owner'],
  },
});

/** Cores with one mistake about readers who join a lease. */
export const OF_JOINED_READERS = mutantsOf({
  'holding/joinable-holds.ts': {
    'has readers join for as long as they come': [
      'if (\n      areHandOffsExhausted(',
      'if (\n      false && areHandOffsExhausted(',
    ],
  },
  'holding/hold.ts': {
    'tells one reader of a loss': [
      'this.#lossController ??= createUnlimitedAbortController()',
      'this.#lossController = createUnlimitedAbortController()',
    ],
    'frees the key with the first reader who leaves': [
      '    this.#entryCount += 1;\n    this.#joinCount += 1;',
      '    this.#joinCount += 1;',
    ],
  },
});

/** Cores with one mistake about changes that meet. */
export const OF_CONTENTION = mutantsOf({
  'line/line-changes.ts': {
    'takes a swap for done that was refused': [
      '(await this.storage.swap(key, storedLine.version, nextLine))) {',
      '(await this.storage.swap(key, storedLine.version, nextLine)) !== undefined) {',
    ],
    'gives one token to two who ask together': [
      '[token, nextToken] = [change.token, change.token + 1n]',
      'token = change.token',
    ],
    'gives tokens that nobody has reserved': ['if (isTokenMissing) break;', ''],
    'forgets the changes before when several come together': [
      'line = change.line;',
      'line = change.line === line ? line : change.line.slice(-1);',
    ],
  },
  'line/line.ts': {
    'stands in line once more after a lost answer': [
      'const index = line.findIndex((entry) => entry.owner === owner);\n  const ownEntry = line[index];\n  const withEntry',
      'const index = -1;\n  const ownEntry: LineEntry | undefined = undefined;\n  const withEntry',
    ],
  },
});
