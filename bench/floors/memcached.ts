import { once } from 'node:events';
import { connect } from 'node:net';
import { type Contestant, retried } from '../contestants/contestant.js';

/** `add` and `delete`, which frees whatever is there. */
export const MEMCACHED_FLOOR: Contestant = {
  name: 'floor: add + delete',
  renews: false,
  connect: async (to, terms) => {
    if (to.backend !== 'memcached') throw new Error(`${to.backend} is not memcached`);
    const { ask, close } = await lineClient(to.servers);
    const seconds = Math.ceil(terms.ttlMs / 1_000);
    return {
      withLock: async (key, work) => {
        await retried(async () => (await ask(`add ${key} 0 ${seconds} 1\r\n1\r\n`)) === 'STORED', terms);
        try {
          await work();
        } finally {
          await ask(`delete ${key}\r\n`);
        }
      },
      close,
    };
  },
};

interface LineClient {
  /** Resolves to the line that answers. */
  readonly ask: (command: string) => Promise<string>;
  readonly close: () => void;
}

async function lineClient(servers: string | readonly string[]): Promise<LineClient> {
  const [address = ''] = [servers].flat();
  const [host = '', port] = address.split(':');
  const socket = connect(Number(port), host).setNoDelay().setEncoding('utf8');
  await once(socket, 'connect');
  const waiting: ((line: string) => void)[] = [];
  let rest = '';
  socket.on('data', (text: string) => {
    const lines = (rest + text).split('\r\n');
    rest = lines.pop() ?? '';
    for (const line of lines) waiting.shift()?.(line);
  });
  return {
    ask: (command) =>
      new Promise((resolve) => {
        waiting.push(resolve);
        socket.write(command);
      }),
    close: () => void socket.destroy(),
  };
}
