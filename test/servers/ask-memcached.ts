import { connect } from 'node:net';
import { timeLimitOf } from '../support/machine.js';

const REPLY_MS = timeLimitOf(2_000);

const END = 'MN\r\n';

/** Sends commands over a connection of its own, which stays nowhere, and resolves to all that is answered. */
export function askMemcached(port: number, commands: string, withinMs = REPLY_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${commands}\r\nmn\r\n`));
    let reply = '';
    socket.setEncoding('utf8').setTimeout(withinMs, () => socket.destroy(new Error(`No reply to ${commands}`)));
    socket.on('data', (text: string) => {
      reply += text;
      if (!reply.endsWith(END)) return;
      socket.destroy();
      resolve(reply.slice(0, -END.length));
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`Connection closed before the reply to ${commands}`)));
  });
}
