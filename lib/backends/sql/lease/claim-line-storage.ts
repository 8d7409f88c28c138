import {
  isExclusive,
  type LineStorage,
  type LineEntry,
  packLine,
  type StoredLine,
  type LineUpdate,
  unpackHolder,
  unpackLine,
} from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import { type ClaimReading, type ClaimRow, type ClaimStatements, CLAIMS_OWNER } from '../dialect/claim-statements.js';

/** Milliseconds in which an owner that was moved from the row into the line must claim its place there. */
const MOVED_OWNER_CLAIM_MS = 5_000;

/** Stores the claims of several owners to one key as a JSON array in the column `metadata` of the key's row. */
export class ClaimLineStorage implements LineStorage<ClaimReading> {
  constructor(
    private readonly statements: ClaimStatements,
    private readonly query: Query,
  ) {}

  async read(key: string): Promise<StoredLine<ClaimReading>> {
    const reading = await this.statements.read(this.query, key);
    const { row, nowUs } = reading;
    const now = Number(nowUs / 1_000n);
    const nextToken = row && row.token >= nowUs ? row.token + 1n : nowUs;
    const emptyStoredLine = { line: [], now, nextToken, allowsSeveralTokens: true, version: reading };
    if (!row) return emptyStoredLine;
    const { owner, metadata, leftMs } = row;
    if (owner !== null && owner !== CLAIMS_OWNER && leftMs > 0 && isExclusive(owner)) {
      const holder = unpackHolder(metadata ?? '');
      const waiters = addMovedOwners([], row.waiting?.owners, now);
      return { ...emptyStoredLine, lease: { owner, leftMs, ...(holder ? { holder } : {}) }, waiters };
    }
    return { ...emptyStoredLine, line: buildLine(row, now) };
  }

  swap(key: string, { row, nowUs }: ClaimReading, { line, token, ready }: LineUpdate): Promise<boolean> {
    const isEmpty = line.length === 0;
    return this.statements.swap(this.query, key, row, {
      owner: isEmpty ? null : CLAIMS_OWNER,
      metadata: isEmpty ? null : packLine(line),
      token: token ?? row?.token ?? nowUs,
      // The row expires with its last claim. If it expired earlier, a newcomer could take it despite a valid claim.
      untilMs: Math.max(Number(nowUs / 1_000n), ...line.map(({ until }) => until)),
      ownersToNotify: ready,
    });
  }
}

/** Returns the line in `metadata`, then the owner who was handed the row, then the waiters of the column `waiting`. */
function buildLine({ owner, metadata, leftMs, waiting }: ClaimRow, now: number): LineEntry[] {
  const line = owner === CLAIMS_OWNER ? unpackLine(metadata ?? '') : [];
  const rowOwners = owner !== null && owner !== CLAIMS_OWNER && leftMs > 0 ? [owner] : [];
  return addMovedOwners(line, [...rowOwners, ...(waiting?.owners ?? [])], now);
}

function addMovedOwners(line: readonly LineEntry[], movedOwners: readonly string[] = [], now: number): LineEntry[] {
  const entries = [...line];
  for (const owner of movedOwners) {
    if (!entries.some((entry) => entry.owner === owner))
      entries.push({ owner, until: now + MOVED_OWNER_CLAIM_MS, description: '' });
  }
  return entries;
}
