import { Account } from './account.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('memcache');

/** Recipe of memcached. With `-M` the server refuses to store an item when its memory is full, and evicts none. */
export const memcached = {
  name: 'memcached',
  account: ACCOUNT,
  serve: (_directory, port) => {
    const address = ['-l', '127.0.0.1', '-p', String(port), '-U', '0'];
    // Only with `-vv` memcached prints that it listens.
    return ACCOUNT.command('memcached', ...address, '-M', '-vv');
  },
  ready: 'server listening',
  stopSignal: 'SIGKILL',
  address: (port) => `127.0.0.1:${port}`,
  install: 'Debian: apt-get install memcached, macOS: brew install memcached',
} satisfies ServerRecipe;
