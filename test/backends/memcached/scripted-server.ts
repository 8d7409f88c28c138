import type { Socket } from 'node:net';
import { StandIn } from '../../support/stand-in.js';

/** A server that does whatever a test wants to each connection, and remembers what was written to it. */
export class ScriptedServer extends StandIn {
  /** The text of each read, over all connections. */
  readonly received: string[] = [];
  accepted = 0;
  closed = 0;

  constructor(private readonly onData: (socket: Socket, text: string) => void) {
    super();
  }

  protected override connect(socket: Socket): void {
    this.accepted += 1;
    socket.setNoDelay(true).on('close', () => (this.closed += 1));
    socket.on('data', (chunk) => {
      this.received.push(chunk.toString());
      this.onData(socket, chunk.toString());
    });
  }
}
