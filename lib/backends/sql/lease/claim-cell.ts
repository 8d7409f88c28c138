import {
  isExclusive,
  type LineCell,
  type LineEntry,
  packLine,
  type CellReading,
  type CellUpdate,
  unpackHolder,
  unpackLine,
} from '../../../core/index.js';
import type { Query } from '../connections/query.js';
import { type ClaimReading, type ClaimRow, type ClaimStatements, CLAIMS_OWNER } from '../dialect/claim-statements.js';

/**
 * Milliseconds for which the line keeps a place for an owner that was moved into it from the row. Within this time the
 * owner must claim the place itself.
 */
const MOVED_CLAIM_MS = 5_000;

/** The line of claims to a key, in the key's row. */
export class ClaimCell implements LineCell<ClaimReading> {
  constructor(
    private readonly statements: ClaimStatements,
    private readonly query: Query,
  ) {}

  async read(key: string): Promise<CellReading<ClaimReading>> {
    const reading = await this.statements.read(this.query, key);
    const { row, nowUs } = reading;
    const now = Number(nowUs / 1_000n);
    const nextToken = row && row.token >= nowUs ? row.token + 1n : nowUs;
    const emptyReading = { line: [], now, nextToken, version: reading };
    if (!row) return emptyReading;
    const { owner, metadata, leftMs } = row;
    if (owner !== null && owner !== CLAIMS_OWNER && leftMs > 0 && isExclusive(owner)) {
      const holder = unpackHolder(metadata ?? '');
      return { ...emptyReading, lease: { owner, leftMs, ...(holder ? { holder } : {}) } };
    }
    return { ...emptyReading, line: buildLine(row, now) };
  }

  swap(key: string, { row, nowUs }: ClaimReading, { line, token, ready }: CellUpdate): Promise<boolean> {
    const isEmpty = line.length === 0;
    return this.statements.swap(this.query, key, row, {
      owner: isEmpty ? null : CLAIMS_OWNER,
      metadata: isEmpty ? null : packLine(line),
      token: token ?? row?.token ?? nowUs,
      // The lease lasts as long as the last entry waits. Otherwise a newcomer could take the expired row before it.
      untilMs: Math.max(Number(nowUs / 1_000n), ...line.map(({ until }) => until)),
      ownersToNotify: ready,
    });
  }
}

/**
 * Returns the line of the row. An owner to whom the row was handed comes behind the line in the metadata, and then the
 * waiters in the row's own column.
 */
function buildLine({ owner, metadata, leftMs, waiting }: ClaimRow, now: number): LineEntry[] {
  const entries = [...(owner === CLAIMS_OWNER ? unpackLine(metadata ?? '') : [])];
  const handedOwners = owner !== null && owner !== CLAIMS_OWNER && leftMs > 0 ? [owner] : [];
  for (const movedOwner of [...handedOwners, ...(waiting?.owners ?? [])]) {
    if (!entries.some((entry) => entry.owner === movedOwner))
      entries.push({ owner: movedOwner, until: now + MOVED_CLAIM_MS, description: '' });
  }
  return entries;
}
