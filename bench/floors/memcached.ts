import { once } from 'node:events';
import { connect } from 'node:net';
import { type Contestant, retryUntilGranted } from '../contestants/contestant.js';

/** Floor of memcached: `add`, and `delete` without a check of the owner. */
export const MEMCACHED_FLOOR: Contestant = {
  name: 'floor: add + delete',
  renewsLease: false,
  connect: async (to, terms) => {
    if (to.backend !== 'memcached') throw new Error(`${to.backend} is not memcached`);
    const { ask, close } = await connectLineClient(to.servers);
    const seconds = Math.ceil(terms.ttlMs / 1_000);
    return {
      withLock: async (key, work) => {
        await retryUntilGranted(async () => (await ask(`add ${key} 0 ${seconds} 1\r\n1\r\n`)) === 'STORED', terms);
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
  /** Sends a command, and resolves to the line of its reply. */
  readonly ask: (command: string) => Promise<string>;
  readonly close: () => void;
}

async function connectLineClient(servers: string | readonly string[]): Promise<LineClient> {
  const [address = ''] = [servers].flat();
  const [host = '', port] = address.split(':');
  const socket = connect(Number(port), host).setNoDelay().setEncoding('utf8');
  await once(socket, 'connect');
  const pendingReplies: ((line: string) => void)[] = [];
  let partialLine = '';
  socket.on('data', (text: string) => {
    const lines = (partialLine + text).split('\r\n');
    partialLine = lines.pop() ?? '';
    for (const line of lines) pendingReplies.shift()?.(line);
  });
  return {
    ask: (command) =>
      new Promise((resolve) => {
        pendingReplies.push(resolve);
        socket.write(command);
      }),
    close: () => void socket.destroy(),
  };
}
