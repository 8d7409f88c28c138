import { unexpectedReplyError } from './error.js';
import type { Command } from './transport/pipeline.js';

/**
 * Classic commands that store an item. The meta command `ms` is of no use here: for want of memory it deletes the item
 * that is stored, see https://github.com/memcached/memcached/issues/1069.
 */
export function addCommand(name: string, value: string, exptime: number | bigint): Command<boolean> {
  return storeCommand(`add ${name} 0 ${exptime} ${Buffer.byteLength(value)}`, value);
}

/** Overwrites the item that has this cas unique. */
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
