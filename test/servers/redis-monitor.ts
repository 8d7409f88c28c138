import { once } from 'node:events';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

export interface MonitoredCommand {
  readonly args: readonly string[];
  /** Whether a script sent it. */
  readonly isOfScript: boolean;
}

/**
 * Calls `onCommand` for each command that the server carries out from now on. It has a socket of its own: a client of
 * ioredis fails when the first commands arrive together with the answer to MONITOR.
 */
export async function monitorRedis(
  port: number,
  onCommand: (command: MonitoredCommand) => void,
): Promise<{ disconnect(): void }> {
  const socket = connect(port, '127.0.0.1', () => socket.write('MONITOR\r\n'));
  const lines = createInterface(socket);
  await once(lines, 'line');
  lines.on('line', (line) => onCommand(parseCommand(line)));
  return { disconnect: () => void socket.destroy() };
}

function parseCommand(line: string): MonitoredCommand {
  const args = Array.from(line.matchAll(/"(?<text>(?:[^"\\]|\\.)*)"/gu), ({ groups }) => unescape(groups?.text ?? ''));
  return { args, isOfScript: /^\+[\d.]+ \[\d+ lua\]/u.test(line) };
}

const unescape = (text: string): string => text.replace(/\\(?<character>["\\])/gu, '$<character>');
