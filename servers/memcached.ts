import { Account } from './account.js';
import type { ServerRecipe } from './recipe.js';

const ACCOUNT = new Account('memcache');

/** It keeps everything in memory, and refuses what does not fit in there. */
export const memcached = {
  name: 'memcached',
  account: ACCOUNT,
  serve: (_directory, port) => {
    const where = ['-l', '127.0.0.1', '-p', String(port), '-U', '0'];
    // It says that it serves only when it is to say everything.
    return ACCOUNT.command('memcached', ...where, '-M', '-vv');
  },
  ready: 'server listening',
  stopSignal: 'SIGKILL',
  address: (port) => `127.0.0.1:${port}`,
  install: 'Debian: apt-get install memcached, macOS: brew install memcached',
} satisfies ServerRecipe;
