import type { Holder, LeaseAttempt } from '../../../core/index.js';

/** A refusal by the row of whoever has the key; without a row it was free a moment ago, and is asked for again at once. */
export function refusalOf(row: Record<string, unknown> | undefined): LeaseAttempt {
  if (!row) return { acquired: false, retryAfterMs: 0 };
  const { remaining, since, stranger } = row;
  const holder =
    holderOf(row['metadata'], since) ?? (typeof stranger === 'string' ? strangerOf(stranger, since) : undefined);
  const retryAfterMs = remaining === null ? null : Number(remaining);
  return { acquired: false, retryAfterMs, ...(holder ? { holder } : {}) };
}

/** Another program's row has a name of its own making, and no process id. */
function strangerOf(name: string, sinceMs: unknown): Holder {
  return { host: name, pid: 0, ...sinceOf(sinceMs) };
}

/** Reads what a holder wrote about itself. Whatever else stands there is no holder and no error. */
function holderOf(metadata: unknown, sinceMs: unknown): Holder | undefined {
  if (typeof metadata !== 'string') return undefined;
  const written = parse(metadata);
  if (typeof written !== 'object' || written === null) return undefined;
  if (!('host' in written && typeof written.host === 'string' && 'pid' in written && typeof written.pid === 'number')) {
    return undefined;
  }
  const label = 'label' in written && typeof written.label === 'string' ? { label: written.label } : {};
  return { host: written.host, pid: written.pid, ...label, ...sinceOf(sinceMs) };
}

function sinceOf(sinceMs: unknown): Pick<Holder, 'since'> {
  return sinceMs !== null && Number.isFinite(Number(sinceMs)) ? { since: new Date(Number(sinceMs)) } : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
