import { existsSync } from 'node:fs';
import { endAfterEach } from '../support/after-each.js';
import type { OwnServer } from './own-server.js';

/** Does `start`, and stops after each test what the test has started. */
export function stoppingAfterEach<Args extends unknown[], Server extends OwnServer>(
  start: (...args: Args) => Promise<Server>,
): (...args: Args) => Promise<Server> {
  const keep = endAfterEach((server: Server) => server.stop());
  return async (...args) => keep(await start(...args));
}

/** `ask` sends a request on a connection of its own. */
export function itIsGoneAfterKill<Server extends OwnServer>(
  start: () => Promise<Server>,
  ask: (server: Server) => Promise<unknown>,
): void {
  it('is gone after kill, frozen or not', async () => {
    const server = await start();
    server.freeze();
    await server.kill();
    await expect(ask(server)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });
}

export function itRemovesItsDirectory(start: () => Promise<OwnServer>): void {
  it('removes its directory', async () => {
    const server = await start();
    expect(existsSync(server.directory)).toBe(true);
    await server.stop();
    expect(existsSync(server.directory)).toBe(false);
  });
}
