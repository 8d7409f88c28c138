import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';

const ATTEMPTS = 5;

export interface RedisServer extends AsyncDisposable {
  readonly url: string;
}

/**
 * The server of `REDIS_URL` if it is on this machine, else a redis-server of our own, which ends with the stampede.
 * @throws Error that says what to install
 */
export async function redisServer(env: NodeJS.ProcessEnv, directory: string): Promise<RedisServer> {
  const url = env['REDIS_URL'];
  if (url === undefined) return start(directory, ATTEMPTS);
  const { hostname } = new URL(url);
  if (!['localhost', '127.0.0.1', '[::1]'].includes(hostname)) {
    throw new Error(
      `a stampede is for this machine only, and REDIS_URL names ${hostname}: unset it, or use a local server`,
    );
  }
  return { url, [Symbol.asyncDispose]: async () => undefined };
}

async function start(directory: string, attempts: number): Promise<RedisServer> {
  const port = await freePort();
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--dir', directory, '--save', '', '--appendonly', 'no'];
  const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'ignore'] });
  if (await serves(child)) {
    const gone = once(child, 'exit');
    const stop = async (): Promise<void> => {
      child.kill('SIGKILL');
      await gone;
    };
    return { url: `redis://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop };
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
