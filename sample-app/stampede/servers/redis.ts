import type { ServerRecipe } from './recipe.js';

export const redis: ServerRecipe = {
  name: 'redis-server',
  serve: (directory, port) => {
    const memoryOnly = ['--save', '', '--appendonly', 'no'];
    return ['redis-server', '--port', String(port), '--bind', '127.0.0.1', '--dir', directory, ...memoryOnly];
  },
  ready: 'Ready to accept connections',
  stopSignal: 'SIGKILL',
  address: (port) => `redis://127.0.0.1:${port}`,
  install: 'Debian: apt-get install redis-server, macOS: brew install redis',
};
