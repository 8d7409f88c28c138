import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import { askRedis } from '../test/servers/ask-redis.js';

/**
 * Counts the requests that clients send to a Redis server during `work`: https://redis.io/docs/latest/commands/monitor/.
 * `MONITOR` slows the server down, and a run with it measures no times.
 */
export async function countRequests(redisUrl: string, work: () => Promise<unknown>): Promise<number> {
  const { hostname, port } = new URL(redisUrl);
  const socket = connect(Number(port), hostname).setNoDelay();
  const lines = createInterface({ input: socket });
  const began = once(lines, 'line');
  socket.write('MONITOR\r\n');
  await began;
  let requests = 0;
  const mark = `end-${Math.random()}`;
  const ended = new Promise<void>((resolve) => {
    lines.on('line', (line: string) => {
      if (line.includes(mark)) resolve();
      // The server also prints the calls inside of a script, which are no requests.
      else if (!/^\+[\d.]+ \[\d+ lua\]/u.test(line)) requests += 1;
    });
  });
  await work();
  await askRedis(Number(port), `ECHO ${mark}`);
  await ended;
  socket.destroy();
  return requests;
}
