import type { ServerRecipe } from './recipe.js';

/**
 * Returns the recipe of a Redis server that writes nothing to the disk.
 * @param more further arguments of redis-server
 */
export function redisWith(...more: readonly string[]): ServerRecipe {
  return {
    name: 'redis-server',
    serve: (directory, port) => {
      const memoryOnly = ['--save', '', '--appendonly', 'no'];
      const locations = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory];
      return ['redis-server', ...locations, ...memoryOnly, ...more];
    },
    ready: 'Ready to accept connections',
    stopSignal: 'SIGKILL',
    address: (port) => `redis://127.0.0.1:${port}`,
    install: 'Debian: apt-get install redis-server, macOS: brew install redis',
  };
}

export const redis = redisWith();
