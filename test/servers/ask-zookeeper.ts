import { connect } from 'node:net';

/** Sends one of the four-letter words, such as `srvr` or `wchs`, and resolves to the answer when the server has closed. */
export function askZookeeper(port: number, word: string, withinMs = 1_000): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(word));
    let reply = '';
    socket.setEncoding('utf8').setTimeout(withinMs, () => socket.destroy(new Error(`No reply to ${word}`)));
    socket.on('data', (text: string) => (reply += text));
    socket.on('error', reject);
    socket.on('close', () => resolve(reply));
  });
}
