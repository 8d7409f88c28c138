import { unexpectedReplyError } from './error.js';
import type { Command } from './transport/pipeline.js';

/**
 * Returns a classic command that stores an item if none has this name. The meta command `ms` is of no use here: when
 * memory is short, it deletes the item that was stored before, see
 * https://github.com/memcached/memcached/issues/1069.
 */
export function addCommand(name: string, value: string, exptime: number | bigint): Command<boolean> {
  return storeCommand(`add ${name} 0 ${exptime} ${Buffer.byteLength(value)}`, value);
}

/** Returns a classic command that overwrites an item if it has this cas unique. */
export function replaceCommand(name: string, value: string, exptime: number, cas: string): Command<boolean> {
  return storeCommand(`cas ${name} 0 ${exptime} ${Buffer.byteLength(value)} ${cas}`, value);
}

function storeCommand(request: string, value: string): Command<boolean> {
  return {
    text: `${request}\r\n${value}\r\n`,
    read: ({ line }) => {
      if (line === 'STORED') return true;
      if (line === 'NOT_STORED' || line === 'EXISTS' || line === 'NOT_FOUND') return false;
      throw unexpectedReplyError(line);
    },
  };
}
