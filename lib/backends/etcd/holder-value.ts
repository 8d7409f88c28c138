import { type Holder, type HolderMetadata, unpackHolder } from '../../core/index.js';

/** What `etcdctl get --prefix lock/<key>/` shows of each one in line: who it is, and since when, by its own clock. */
export function holderValue({ host, pid, label }: HolderMetadata, since: Date): string {
  return JSON.stringify({ host, pid, label, since });
}

/** Who wrote it, or `undefined` for what none of us wrote. */
export function holderOf(value: string): Holder | undefined {
  const since = new Date(/"since":"(?<since>[\d:.TZ-]+)"\}$/u.exec(value)?.groups?.since ?? Number.NaN);
  return unpackHolder(value, Number.isNaN(since.getTime()) ? undefined : since);
}
