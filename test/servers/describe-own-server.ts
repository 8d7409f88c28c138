import { existsSync } from 'node:fs';
import type { OwnServer } from './own-server.js';

/** Does `start`, and stops after each test what the test has started. */
export function stoppingAfterEach<Args extends unknown[], Server extends OwnServer>(
  start: (...args: Args) => Promise<Server>,
): (...args: Args) => Promise<Server> {
  const started: Server[] = [];
  afterEach(() => Promise.all(started.splice(0).map((server) => server.stop())));
  return async (...args) => {
    const server = await start(...args);
    started.push(server);
    return server;
  };
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
