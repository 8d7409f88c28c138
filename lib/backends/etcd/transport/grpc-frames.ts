/** Number of bytes before each message of gRPC: one that tells whether it is compressed, and four for its length. */
const PREFIX_LENGTH = 5;
/** Maximum number of bytes in a message, as in gRPC's own clients. etcd's answers to a lock are far smaller. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

export function encodeFrame(message: Buffer): Buffer {
  const framed = Buffer.alloc(PREFIX_LENGTH + message.length);
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, PREFIX_LENGTH);
  return framed;
}

/** Assembles messages from pieces of any size. */
export class FrameReader {
  #chunks: Buffer[] = [];
  #length = 0;
  /**
   * Number of bytes to wait for: those of a prefix, or of the first message with its prefix. Pieces are joined only
   * once so many are there, so that each byte is copied twice at most.
   */
  #neededBytes = PREFIX_LENGTH;

  /**
   * Returns the messages that `chunk` completes.
   * @throws Error when the bytes are no message, or announce one that is too long
   */
  read(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: Buffer[] = [];
    if (this.#length < this.#neededBytes) return messages;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#neededBytes = firstFrameBytes(rest);
    while (rest.length >= this.#neededBytes && rest.length >= PREFIX_LENGTH) {
      messages.push(rest.subarray(PREFIX_LENGTH, this.#neededBytes));
      rest = rest.subarray(this.#neededBytes);
      this.#neededBytes = firstFrameBytes(rest);
    }
    this.#chunks = [rest];
    this.#length = rest.length;
    return messages;
  }
}

/** Returns the number of bytes of the first message with its prefix, or of the prefix where it is incomplete. */
function firstFrameBytes(bytes: Buffer): number {
  if (bytes.length < PREFIX_LENGTH) return PREFIX_LENGTH;
  if (bytes.readUInt8(0) !== 0) throw new Error('the server compressed a message although nobody asked it to');
  const length = bytes.readUInt32BE(1);
  if (length > MAX_MESSAGE_BYTES) {
    throw new Error(`the server announced a message of ${length} bytes: at most ${MAX_MESSAGE_BYTES} are taken`);
  }
  return PREFIX_LENGTH + length;
}
