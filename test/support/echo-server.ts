import { connect, createServer, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.js';

/** A server that answers each line with `echo <line>`, and remembers what it saw. */
export class EchoServer {
  readonly lines: string[] = [];
  readonly sockets: Socket[] = [];
  readonly server: Server = createServer((socket) => {
    this.sockets.push(socket);
    socket.setEncoding('utf8').on('data', (text: string) => {
      this.lines.push(...text.split('\n').filter((line) => line !== ''));
      socket.write(`echo ${text}`);
    });
    socket.on('error', () => undefined);
  });
}

/** The bytes that it has received, and how its connection ended. */
export class EchoClient {
  received = '';
  closedWith: string | undefined;
  readonly socket: Socket;

  constructor(port: number) {
    this.socket = connect(port, '127.0.0.1');
    this.socket.setEncoding('utf8').on('data', (text: string) => (this.received += text));
    this.socket.on('error', (error: NodeJS.ErrnoException) => (this.closedWith = error.code));
    this.socket.on('close', () => (this.closedWith ??= 'end'));
  }

  async gets(text: string): Promise<void> {
    await eventually(() => expect(this.received).toBe(text), { withinMs: 1_000 });
  }
}
