import { MemcachedError, unexpectedReplyError } from './error.js';
import type { Command } from './transport/pipeline.js';

export function statisticsCommand(topic: '' | ' settings'): Command<ReadonlyMap<string, string>> {
  const entries = new Map<string, string>();
  return {
    text: `stats${topic}\r\n`,
    read: ({ line }) => {
      if (line === 'END') return entries;
      const { name, value } = /^STAT (?<name>\S+) ?(?<value>.*)$/u.exec(line)?.groups ?? {};
      if (name === undefined || value === undefined || entries.size > 1_000) throw unexpectedReplyError(line);
      entries.set(name, value);
      return undefined;
    },
  };
}

export const META_NOOP_COMMAND: Command<true> = {
  text: 'mn\r\n',
  read: ({ line }) => {
    if (line.startsWith('MN')) return true;
    throw line === 'ERROR'
      ? new MemcachedError('protocol', 'the server does not know "mn"')
      : unexpectedReplyError(line);
  },
};

export function getServerAdvice(
  statisticsByName: ReadonlyMap<string, string>,
  settings: ReadonlyMap<string, string>,
): string | undefined {
  const getNumber = (name: string): number => Number(statisticsByName.get(name) ?? 0);
  const usedBytes = getNumber('bytes');
  const limitBytes = getNumber('limit_maxbytes');
  const memoryText = `${formatMebibytes(usedBytes)} of ${formatMebibytes(limitBytes)} MB in use, ${getNumber('evictions')} evictions so far`;
  if (settings.get('proxy_enabled') === 'yes') {
    return 'it is a proxy: when a server behind it restarts without its locks, nobody here is told, and two may have one';
  }
  if (settings.get('evictions') === 'on') {
    return `it was not started with -M, so when it is full it deletes locks that are held (${memoryText})`;
  }
  return usedBytes > limitBytes * WARNING_SHARE
    ? `it is nearly full, and then it refuses locks (${memoryText})`
    : undefined;
}

/**
 * Share of the memory above which the advice warns. A small server was seen to refuse items at 78 %. memcached reserves
 * memory for each size of items, so that a part of the memory stays unused.
 */
const WARNING_SHARE = 0.75;

function formatMebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(bytes < 2 ** 20 ? 1 : 0);
}
