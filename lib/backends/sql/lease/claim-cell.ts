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
import { type ClaimReading, type ClaimRow, type ClaimStatements, LINE_OWNER } from '../dialect/claim-statements.js';

/** One who waited in the row, or was handed it, has so long to ask for its place in the line. */
const MOVED_MS = 5_000;

/** The line of claims to a key, in the key's row. */
export class ClaimCell implements LineCell<ClaimReading> {
  constructor(
    private readonly statements: ClaimStatements,
    private readonly query: Query,
  ) {}

  async read(key: string): Promise<CellReading<ClaimReading>> {
    const place = await this.statements.read(this.query, key);
    const { row, nowUs } = place;
    const now = Number(nowUs / 1_000n);
    const nextToken = row && row.token >= nowUs ? row.token + 1n : nowUs;
    const sight = { line: [], now, nextToken, place };
    if (!row) return sight;
    const { owner, metadata, leftMs } = row;
    if (owner !== null && owner !== LINE_OWNER && leftMs > 0 && isExclusive(owner)) {
      const holder = unpackHolder(metadata ?? '');
      return { ...sight, lease: { owner, leftMs, ...(holder ? { holder } : {}) } };
    }
    return { ...sight, line: lineIn(row, now) };
  }

  swap(key: string, { row, nowUs }: ClaimReading, { line, token, ready }: CellUpdate): Promise<boolean> {
    const isEmpty = line.length === 0;
    return this.statements.swap(this.query, key, row, {
      owner: isEmpty ? null : LINE_OWNER,
      metadata: isEmpty ? null : packLine(line),
      token: token ?? row?.token ?? nowUs,
      // As long as one who waits, so that nobody comes before it who finds the row over.
      untilMs: Math.max(Number(nowUs / 1_000n), ...line.map(({ until }) => until)),
      ready,
    });
  }
}

/** With those who wait in the row itself behind it, and first one who was handed the row to share it. */
function lineIn({ owner, metadata, leftMs, waiting }: ClaimRow, now: number): LineEntry[] {
  const entries = [...(owner === LINE_OWNER ? unpackLine(metadata ?? '') : [])];
  const handed = owner !== null && owner !== LINE_OWNER && leftMs > 0 ? [owner] : [];
  for (const moved of [...handed, ...(waiting?.owners ?? [])]) {
    if (!entries.some((entry) => entry.owner === moved))
      entries.push({ owner: moved, until: now + MOVED_MS, description: '' });
  }
  return entries;
}
