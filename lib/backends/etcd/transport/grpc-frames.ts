/** Each message of gRPC has a byte that says whether it is compressed, and its length, before it. */
const PREFIX_LENGTH = 5;
/** As gRPC's own clients have it. What etcd tells a lock is far smaller. */
const LONGEST_MESSAGE = 4 * 1024 * 1024;

export function frame(message: Buffer): Buffer {
  const framed = Buffer.alloc(PREFIX_LENGTH + message.length);
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, PREFIX_LENGTH);
  return framed;
}

/** Puts messages together from whatever pieces they arrive in. */
export class Frames {
  #chunks: Buffer[] = [];
  #length = 0;
  /** As many bytes as the next step needs: pieces are joined no sooner, so that each byte is copied twice at most. */
  #needed = PREFIX_LENGTH;

  /** @throws Error when the bytes are no message, or announce one that is too long */
  take(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    const messages: Buffer[] = [];
    if (this.#length < this.#needed) return messages;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#needed = endOfFirst(rest);
    for (; rest.length >= this.#needed && rest.length >= PREFIX_LENGTH; this.#needed = endOfFirst(rest)) {
      messages.push(rest.subarray(PREFIX_LENGTH, this.#needed));
      rest = rest.subarray(this.#needed);
    }
    this.#chunks = [rest];
    this.#length = rest.length;
    return messages;
  }
}

/** How many bytes the first message of `bytes` has with its prefix, or the prefix where it is not all there. */
function endOfFirst(bytes: Buffer): number {
  if (bytes.length < PREFIX_LENGTH) return PREFIX_LENGTH;
  if (bytes.readUInt8(0) !== 0) throw new Error('the server compressed a message although nobody asked it to');
  const length = bytes.readUInt32BE(1);
  if (length > LONGEST_MESSAGE) {
    throw new Error(`the server announced a message of ${length} bytes: at most ${LONGEST_MESSAGE} are taken`);
  }
  return PREFIX_LENGTH + length;
}
