import { MemcachedError, unexpected } from './error.js';
import type { Command } from './transport/pipeline.js';

export function statistics(topic: '' | ' settings'): Command<ReadonlyMap<string, string>> {
  const found = new Map<string, string>();
  return {
    text: `stats${topic}\r\n`,
    read: ({ line }) => {
      if (line === 'END') return found;
      const { name, value } = /^STAT (?<name>\S+) ?(?<value>.*)$/u.exec(line)?.groups ?? {};
      if (name === undefined || value === undefined || found.size > 1_000) throw unexpected(line);
      found.set(name, value);
      return undefined;
    },
  };
}

/** Answers whether the server knows the meta commands. */
export const KNOWS_META: Command<true> = {
  text: 'mn\r\n',
  read: ({ line }) => {
    if (line.startsWith('MN')) return true;
    throw line === 'ERROR' ? new MemcachedError('protocol', 'the server does not know "mn"') : unexpected(line);
  },
};

export function adviceOn(
  found: ReadonlyMap<string, string>,
  settings: ReadonlyMap<string, string>,
): string | undefined {
  const number = (name: string): number => Number(found.get(name) ?? 0);
  const [used, limit] = [number('bytes'), number('limit_maxbytes')];
  const memory = `${mebibytes(used)} of ${mebibytes(limit)} MB in use, ${number('evictions')} evictions so far`;
  if (settings.get('proxy_enabled') === 'yes') {
    return 'it is a proxy: when a server behind it restarts without its locks, nobody here is told, and two may have one';
  }
  if (settings.get('evictions') === 'on') {
    return `it was not started with -M, so when it is full it deletes locks that are held (${memory})`;
  }
  return used > limit * NEARLY ? `it is nearly full, and then it refuses locks (${memory})` : undefined;
}

/** A small server was seen to refuse at 78 %: it loses some of its memory to the sizes in which it cuts it. */
const NEARLY = 0.75;

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(bytes < 2 ** 20 ? 1 : 0);
}
