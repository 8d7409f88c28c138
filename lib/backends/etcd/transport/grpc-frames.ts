/** Number of bytes before each message of gRPC: one tells whether the message is compressed, four tell its length. */
const PREFIX_LENGTH = 5;
/** Limit of gRPC's own clients. etcd's answers to a lock are far smaller. */
const MAX_MESSAGE_BYTES = 4 * 1024 * 1024;

export function encodeFrame(message: Buffer): Buffer {
  const frame = Buffer.alloc(PREFIX_LENGTH + message.length);
  frame.writeUInt32BE(message.length, 1);
  message.copy(frame, PREFIX_LENGTH);
  return frame;
}

export class FrameReader {
  #chunks: Buffer[] = [];
  #chunksLength = 0;
  /** Number of bytes to wait for before the chunks are joined, so that each byte is copied twice at most. */
  #neededBytes = PREFIX_LENGTH;

  /**
   * Returns the messages that `chunk` completes.
   * @throws Error when the bytes are no message, or announce one that is too long
   */
  read(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#chunksLength += chunk.length;
    const messages: Buffer[] = [];
    if (this.#chunksLength < this.#neededBytes) return messages;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#neededBytes = getFirstFrameLength(rest);
    while (rest.length >= this.#neededBytes && rest.length >= PREFIX_LENGTH) {
      messages.push(rest.subarray(PREFIX_LENGTH, this.#neededBytes));
      rest = rest.subarray(this.#neededBytes);
      this.#neededBytes = getFirstFrameLength(rest);
    }
    this.#chunks = [rest];
    this.#chunksLength = rest.length;
    return messages;
  }
}

/** Returns the length of the first frame, or of its prefix while that is incomplete. */
function getFirstFrameLength(bytes: Buffer): number {
  if (bytes.length < PREFIX_LENGTH) return PREFIX_LENGTH;
  if (bytes.readUInt8(0) !== 0) throw new Error('the server compressed a message although nobody asked it to');
  const length = bytes.readUInt32BE(1);
  if (length > MAX_MESSAGE_BYTES) {
    throw new Error(`the server announced a message of ${length} bytes: at most ${MAX_MESSAGE_BYTES} are taken`);
  }
  return PREFIX_LENGTH + length;
}
