import type { Socket } from 'node:net';
import { StandIn } from '../../support/stand-in.js';

import { resetSocket } from '../../support/reset-socket.js';

/** One address in front of several servers: each new connection leads to the next of them. */
export class Balancer extends StandIn {
  /** Ports of the servers, which a test may change. */
  ports: readonly number[];
  #accepted = 0;

  constructor(...ports: readonly number[]) {
    super();
    this.ports = ports;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  override reset(): void {
    for (const socket of this.sockets) resetSocket(socket);
  }

  protected override connect(client: Socket): void {
    const port = this.ports[this.#accepted % this.ports.length] ?? 0;
    this.#accepted += 1;
    client.pipe(this.connectBehind(port, client)).pipe(client);
  }
}
