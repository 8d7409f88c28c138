import { connect } from 'node:net';
import { timeLimitOf } from '../support/machine.js';

const REPLY_MS = timeLimitOf(1_000);

/**
 * Sends one inline command over a socket of its own and resolves to the reply's text, so that the harness needs no client
 * and leaves no connection behind. Understands one-line and bulk replies.
 */
export function askRedis(port: number, command: string, withinMs = REPLY_MS): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${command}\r\n`));
    let reply = '';
    socket.setEncoding('latin1').setTimeout(withinMs, () => socket.destroy(new Error(`No reply to ${command}`)));
    socket.on('data', (text: string) => {
      reply += text;
      const complete = parseReply(reply);
      if (complete === undefined) return;
      socket.destroy();
      resolve(complete);
    });
    socket.on('error', reject);
    socket.on('close', () => reject(new Error(`Connection closed before the reply to ${command}`)));
  });
}

function parseReply(reply: string): string | undefined {
  const endOfLine = reply.indexOf('\r\n');
  if (endOfLine === -1) return undefined;
  const line = reply.slice(1, endOfLine);
  if (!reply.startsWith('$')) return line;
  const body = reply.slice(endOfLine + 2);
  return body.length >= Number(line) + 2 ? body.slice(0, Number(line)) : undefined;
}

/** How many scripts clients have had these servers run so far. */
export async function scriptsRun(servers: readonly { readonly port: number }[]): Promise<number> {
  const infos = await Promise.all(servers.map(({ port }) => askRedis(port, 'INFO commandstats')));
  const calls = infos.flatMap((info) => Array.from(info.matchAll(/^cmdstat_eval(?:sha)?:calls=(?<calls>\d+)/gmu)));
  return calls.reduce((sum, { groups }) => sum + Number(groups?.calls), 0);
}
