import type { Socket } from 'node:net';

import { Pipe } from './pipe.js';
import { resetSocket } from './reset-socket.js';

export type Way = 'up' | 'down';

/** The events that the proxy hears from its links. */
export interface LinkListener {
  /** The client has sent this, whether or not it will be forwarded. */
  received(chunk: Buffer): void;
  /** This is about to leave the proxy; true means that the listener has taken care of it. */
  leaving(link: Link, way: Way, chunk: Buffer): boolean;
  closed(link: Link): void;
}

/** A client's connection together with ours to the server behind it: up is towards the server. */
export class Link {
  readonly pipes: Readonly<Record<Way, Pipe>> = { up: new Pipe(), down: new Pipe() };
  readonly #client: Socket;
  readonly #server: Socket;

  constructor(client: Socket, server: Socket, listener: LinkListener) {
    this.#client = client;
    this.#server = server;
    client.on('data', (chunk) => listener.received(chunk));
    this.#carry('up', client, server, listener);
    this.#carry('down', server, client, listener);
  }

  write(way: Way, chunk: Buffer): void {
    this.#to(way).write(chunk);
  }

  /** Nothing comes through any more, either way: bytes, ends and resets. Neither side hears of it. */
  forget(): void {
    this.#silence();
  }

  /** Both sides see a reset. */
  reset(): void {
    this.#silence();
    resetSocket(this.#client);
    resetSocket(this.#server);
  }

  /** Sends the first half of `chunk` and then ends both connections. */
  cutWithin(way: Way, chunk: Buffer): void {
    this.#silence();
    const receiver = this.#to(way);
    receiver.write(chunk.subarray(0, Math.floor(chunk.length / 2)));
    receiver.destroySoon();
    this.#to(way === 'up' ? 'down' : 'up').destroy();
  }

  /**
   * Forwards `request`, swallows what the server answers, and resets the client once the server has answered and closed.
   * Ending, not resetting, the server's side lets it work through all it was sent before.
   */
  loseReplyTo(request: Buffer): Promise<void> {
    this.#silence();
    return new Promise((resolve, reject) => {
      let answered = false;
      this.#server.once('data', () => {
        answered = true;
        this.#server.end();
      });
      this.#server.once('end', () => this.#server.end());
      this.#server.once('close', () => {
        resetSocket(this.#client);
        if (answered) resolve();
        else reject(new Error('The server closed the connection without an answer'));
      });
      this.#server.write(request);
    });
  }

  #carry(way: Way, from: Socket, to: Socket, listener: LinkListener): void {
    const pipe = this.pipes[way];
    from.setNoDelay(true);
    from.on('data', (chunk) =>
      pipe.send(() => {
        if (!listener.leaving(this, way, chunk)) to.write(chunk);
      }),
    );
    from.on('end', () => pipe.send(() => to.end()));
    // The event `close` tells of errors, and always follows.
    from.on('error', () => undefined);
    from.on('close', (failed) => {
      if (failed) pipe.send(() => resetSocket(to));
      if (this.#client.closed && this.#server.closed) listener.closed(this);
    });
  }

  #to(way: Way): Socket {
    return way === 'up' ? this.#server : this.#client;
  }

  #silence(): void {
    this.pipes.up.close();
    this.pipes.down.close();
  }
}
