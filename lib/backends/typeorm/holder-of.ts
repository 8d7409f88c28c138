import type { Holder } from '../../core/index.js';

/** Reads what a holder wrote about itself. Whatever else stands there is no holder and no error. */
export function holderOf(metadata: unknown, sinceMs: unknown): Holder | undefined {
  if (typeof metadata !== 'string') return undefined;
  const written = parse(metadata);
  if (typeof written !== 'object' || written === null) return undefined;
  if (!('host' in written && typeof written.host === 'string' && 'pid' in written && typeof written.pid === 'number')) {
    return undefined;
  }
  const label = 'label' in written && typeof written.label === 'string' ? { label: written.label } : {};
  const since = Number.isFinite(Number(sinceMs)) ? { since: new Date(Number(sinceMs)) } : {};
  return { host: written.host, pid: written.pid, ...label, ...since };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
