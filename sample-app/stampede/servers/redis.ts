import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server } from './server.js';

const ATTEMPTS = 5;

/** A redis-server of our own, which forgets all when it ends. @throws Error that says what to install */
export function startRedis(directory: string): Promise<Server> {
  return start(directory, ATTEMPTS);
}

async function start(directory: string, attempts: number): Promise<Server> {
  const port = await freePort();
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'ignore'] });
  if (await serves(child)) {
    const gone = once(child, 'exit');
    const stop = async (): Promise<void> => {
      child.kill('SIGKILL');
      await gone;
    };
    return { address: `redis://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop };
  }
  // Somebody else may have taken the port between our look and the server's.
  if (attempts > 1) return start(directory, attempts - 1);
  throw new Error('redis-server does not start');
}

/** Resolves to true at the line with which the server says so, to false when it ends before. */
function serves(child: ChildProcess): Promise<boolean> {
  return new Promise((resolve, reject) => {
    child.once('exit', () => resolve(false));
    child.once('error', (error) => reject(notInstalled(error)));
    let log = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      if (log.includes('Ready to accept connections')) resolve(true);
    });
  });
}

function notInstalled(cause: Error): Error {
  const advice =
    'install it (Debian: apt-get install redis-server, macOS: brew install redis), or set REDIS_URL to a local server';
  return new Error(`redis-server cannot be started: ${advice}`, { cause });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (typeof address !== 'object' || address === null) throw new Error('a TCP server has an address');
  return address.port;
}
