const LENGTH_BYTES = 4;

/** Splits the bytes that a server sends into frames. Each begins with the length of the rest. */
export class FrameSplitter {
  #pending: Buffer = Buffer.alloc(0);

  /**
   * Yields the frames that `chunk` completes, each with its length.
   * @throws for a negative length
   */
  *split(chunk: Buffer): Generator<Buffer> {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    while (this.#pending.length >= LENGTH_BYTES) {
      const length = this.#pending.readInt32BE();
      if (length < 0) throw new Error(`a frame of ${length} bytes`);
      const end = LENGTH_BYTES + length;
      if (this.#pending.length < end) return;
      const frame = this.#pending.subarray(0, end);
      this.#pending = this.#pending.subarray(end);
      yield frame;
    }
  }
}
