import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import { askRedis } from '../test/servers/ask-redis.js';

/**
 * How many requests clients send to a Redis server during `work`: https://redis.io/docs/latest/commands/monitor/. Telling us of
 * each costs the server time, so such a run is for counting only.
 */
export async function requestsDuring(redisUrl: string, work: () => Promise<unknown>): Promise<number> {
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
      // A call of a script inside the server is no request.
      else if (!/^\+[\d.]+ \[\d+ lua\]/u.test(line)) requests += 1;
    });
  });
  await work();
  await askRedis(Number(port), `ECHO ${mark}`);
  await ended;
  socket.destroy();
  return requests;
}
