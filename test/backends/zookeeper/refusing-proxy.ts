import type { Socket } from 'node:net';
import { StandIn } from '../../support/stand-in.js';

const DELETE = 2;
/** No node has it: the server refuses to delete one of this version. */
const NO_VERSION = 77;
const REPLY_HEADER = 16;
/** Instead of the number of a request. */
const NOTIFICATION = -1;

/**
 * Stands between a client and its server. Has the server refuse to delete nodes, with whatever error a test wants, loses what
 * the server tells of watches, or has the server open a new session for a client that asks for its own.
 */
export class RefusingProxy extends StandIn {
  /** How many deletions are still to be refused. */
  left = 0;
  refused = 0;
  losesNotifications = false;
  lost = 0;
  replacesSessions = false;
  replaced = 0;
  #code = 0;

  constructor(private readonly target: { readonly port: number }) {
    super();
  }

  refuse(code: number, times: number): void {
    this.#code = code;
    this.left = times;
  }

  protected override connect(client: Socket): void {
    const server = this.connectBehind(this.target.port, client);
    const refused = new Set<number>();
    for (const [from, to] of [
      [client, server],
      [server, client],
    ] as const) {
      from.setNoDelay(true);
      const change = from === client ? this.#onRequest : this.#onReply;
      let [rest, frames] = [Buffer.alloc(0), 0];
      from.on('data', (chunk: Buffer) => {
        rest = Buffer.concat([rest, chunk]);
        while (rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0)) {
          const frame = rest.subarray(0, 4 + rest.readInt32BE(0));
          rest = rest.subarray(frame.length);
          // The first one each way is the handshake.
          if (frames === 0 && from === client) this.#onConnectRequest(frame);
          if (frames === 0 || change(frame, refused)) to.write(frame);
          frames += 1;
        }
      });
    }
  }

  /** Its session has 8 bytes, and the password 16 after their length. Zeroes ask for a new session. */
  #onConnectRequest(frame: Buffer): void {
    if (!this.replacesSessions || frame.readBigInt64BE(20) === 0n) return;
    this.replaced += 1;
    frame.fill(0, 20, 28).fill(0, 32, 48);
  }

  /** A request is its length, its number, its kind, and for a deletion a path and a version. */
  readonly #onRequest = (frame: Buffer, refused: Set<number>): boolean => {
    if (frame.length < 12 || frame.readInt32BE(8) !== DELETE || this.left === 0) return true;
    this.left -= 1;
    this.refused += 1;
    refused.add(frame.readInt32BE(4));
    frame.writeInt32BE(NO_VERSION, frame.length - 4);
    return true;
  };

  /** A reply is its length, the number of its request, the number of a transaction, and an error. */
  readonly #onReply = (frame: Buffer, refused: Set<number>): boolean => {
    if (frame.length < 4 + REPLY_HEADER) return true;
    const number = frame.readInt32BE(4);
    if (refused.delete(number)) frame.writeInt32BE(this.#code, 16);
    if (number !== NOTIFICATION || !this.losesNotifications) return true;
    this.lost += 1;
    return false;
  };
}
