import { rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { RedisServer } from '../servers/redis-server.js';
import { node, PackedLibrary, root } from './packed-library.js';

describe('the package beside one client of Redis', () => {
  let library: PackedLibrary;
  beforeAll(() => {
    library = new PackedLibrary();
  });
  afterAll(() => library.remove());

  it.each(['redis', 'redis-5'])('connects by node-redis where ioredis is not installed (%s)', async (folder) => {
    const home = library.application(`only-${folder}`, join(root, 'node_modules'), 'module');
    for (const client of ['ioredis', 'redis']) rmSync(join(home, 'node_modules', client));
    symlinkSync(join(root, 'node_modules', folder), join(home, 'node_modules/redis'));
    const server = await RedisServer.start();
    const loadBy = { 'locks.mjs': 'await import', 'locks.cjs': 'require' };
    try {
      for (const [file, load] of Object.entries(loadBy)) {
        const text = `
          (async () => {
            const { redis } = ${load}('nestjs-distributed-lock/redis');
            const { LockService } = ${load}('nestjs-distributed-lock/core');
            const locks = new LockService(redis({ url: '${server.url}' }));
            console.log(await locks.withLock('key', () => 'in'));
            await locks.close();
          })();`;
        expect(node(home, file, text)).toBe('in\n');
      }
    } finally {
      await server.stop();
    }
  });
});
