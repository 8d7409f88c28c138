import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below the ephemeral range, so that no outgoing connection can sit on a port of ours while its server restarts. */
const LOWEST = 10_000;
const HIGHEST = 22_000;

/** Another address of this machine, where no server of ours listens. Systems other than Linux may have none. */
const HELD_AT = '127.0.0.2';

/**
 * A port on 127.0.0.1 that is free now. As long as this process lives, no other call gets it, in whichever process, also
 * while its server restarts: whoever takes it listens on the same port of another address. Whoever uses it must listen on
 * 127.0.0.1 only.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if ((await hold(port)) && (await isFree(port))) return port;
  }
  throw new Error(`No free port found between ${LOWEST} and ${HIGHEST}`);
}

async function hold(port: number): Promise<boolean> {
  const server = createServer().unref();
  try {
    await once(server.listen(port, HELD_AT), 'listening');
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EADDRNOTAVAIL';
  }
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  try {
    await once(server.listen(port, '127.0.0.1'), 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
