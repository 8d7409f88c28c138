/**
 * Splits the bytes of a connection into frames, each of which begins with a prefix that tells its length. Joins chunks
 * only when a frame is complete, so that each byte is copied twice at most.
 */
export class FrameReader {
  #chunks: Buffer[] = [];
  #chunksLength = 0;
  /** Number of bytes to wait for: the length of the first frame, or of its prefix while that is incomplete. */
  #neededByteCount: number;

  /**
   * @param readFrameLength returns the length of a frame with its prefix, from bytes that begin with the prefix; may
   * throw
   */
  constructor(
    private readonly prefixLength: number,
    private readonly readFrameLength: (bytes: Buffer) => number,
  ) {
    this.#neededByteCount = prefixLength;
  }

  /** Returns the frames that `chunk` completes, with their prefixes. Throws what `readFrameLength` throws. */
  read(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#chunksLength += chunk.length;
    const frames: Buffer[] = [];
    if (this.#chunksLength < this.#neededByteCount) return frames;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    this.#neededByteCount = this.#getFirstFrameLength(rest);
    while (rest.length >= this.#neededByteCount && rest.length >= this.prefixLength) {
      frames.push(rest.subarray(0, this.#neededByteCount));
      rest = rest.subarray(this.#neededByteCount);
      this.#neededByteCount = this.#getFirstFrameLength(rest);
    }
    this.#chunks = [rest];
    this.#chunksLength = rest.length;
    return frames;
  }

  #getFirstFrameLength(bytes: Buffer): number {
    return bytes.length < this.prefixLength ? this.prefixLength : this.readFrameLength(bytes);
  }
}
