import { systemClock } from '../../core/index.js';
import type { EtcdClient } from './transport/client.js';
import { COMPACTION_ADVICE } from './error.js';
import { METHOD } from './transport/messages.js';

const BYTES_PER_GIB = 1024 ** 3;
/** Assumed quota of servers before etcd 3.6, which do not report theirs: etcd's default. */
const DEFAULT_QUOTA_BYTES = 2 * BYTES_PER_GIB;
/** Share of the quota at which `health` begins to warn. */
const WARNING_SHARE = 0.8;

const CHECK_INTERVAL_MS = 60_000;
const CHECK_INTERVAL_AFTER_WARNING_MS = 5_000;

/** Warns in `health` before etcd's database is full. A full database refuses every write of every client. */
export class DatabaseSizeMonitor {
  #checkedAt = -Infinity;
  #hasWarned = false;

  constructor(private readonly client: EtcdClient) {}

  checkIfDue(): void {
    if (systemClock.now() - this.#checkedAt >= (this.#hasWarned ? CHECK_INTERVAL_AFTER_WARNING_MS : CHECK_INTERVAL_MS))
      void this.check();
  }

  async check(): Promise<void> {
    this.#checkedAt = systemClock.now();
    try {
      const status = await this.client.call(METHOD.status, Buffer.alloc(0));
      // Field 3 is the size of the database, 8 lists alarms and errors, and 12 is the quota.
      const isFull = status.texts(8).some((error) => error.includes('NOSPACE'));
      const advice = getSizeAdvice(Number(status.integer(3)), Number(status.integer(12)), isFull);
      this.#hasWarned = advice !== undefined;
      this.client.health.setAdvice('size', advice);
    } catch {
      // Keeps the last advice when etcd does not answer, or when this user may not read the status.
    }
  }
}

/** @param quotaBytes 0 when the server does not report it */
export function getSizeAdvice(sizeBytes: number, quotaBytes: number, isFull: boolean): string | undefined {
  const limitBytes = quotaBytes > 0 ? quotaBytes : DEFAULT_QUOTA_BYTES;
  if (!isFull && sizeBytes < limitBytes * WARNING_SHARE) return undefined;
  const quotaText = quotaBytes > 0 ? ` of ${formatGib(quotaBytes)} GiB` : ', which is 2 GiB unless it was set';
  const stateText = isFull ? 'is full, and refuses every write' : `will refuse every write at its quota${quotaText}`;
  return `etcd's database has ${formatGib(sizeBytes)} GiB and ${stateText}: ${COMPACTION_ADVICE}`;
}

function formatGib(bytes: number): string {
  return (bytes / BYTES_PER_GIB).toFixed(2);
}
