import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Least port. All are below the ephemeral range: no outgoing connection takes one while its server restarts. */
const MIN_PORT = 10_000;
const MAX_PORT = 22_000;

/** Another address of this machine, on which no server listens. Systems other than Linux may lack it. */
const RESERVING_ADDRESS = '127.0.0.2';

/**
 * Returns a port that is free on 127.0.0.1. No other call gets it while this process lives, also while its server restarts:
 * this process listens on the same port of `RESERVING_ADDRESS`. The caller must listen on 127.0.0.1 only.
 */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const port = randomInt(MIN_PORT, MAX_PORT);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
  throw new Error(`No free port found between ${MIN_PORT} and ${MAX_PORT}`);
}

/** Reserves a port among all processes. Returns whether it is reserved, or the system lacks the address. */
async function reserve(port: number): Promise<boolean> {
  const server = createServer().unref();
  try {
    await once(server.listen(port, RESERVING_ADDRESS), 'listening');
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
