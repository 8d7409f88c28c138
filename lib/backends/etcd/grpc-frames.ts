/** Each message of gRPC has a byte that says whether it is compressed, and its length, before it. */
const PREFIX_LENGTH = 5;

export function frame(message: Buffer): Buffer {
  const framed = Buffer.alloc(PREFIX_LENGTH + message.length);
  framed.writeUInt32BE(message.length, 1);
  message.copy(framed, PREFIX_LENGTH);
  return framed;
}

/** Puts messages together from whatever pieces they arrive in. */
export class Frames {
  #rest: Buffer = Buffer.alloc(0);

  take(chunk: Buffer): Buffer[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const messages: Buffer[] = [];
    while (this.#rest.length >= PREFIX_LENGTH) {
      if (this.#rest.readUInt8(0) !== 0) throw new Error('the server compressed a message although nobody asked it to');
      const end = PREFIX_LENGTH + this.#rest.readUInt32BE(1);
      if (this.#rest.length < end) break;
      messages.push(this.#rest.subarray(PREFIX_LENGTH, end));
      this.#rest = this.#rest.subarray(end);
    }
    return messages;
  }
}
