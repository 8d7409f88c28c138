import { FrameReader } from '../../../core/index.js';

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

export class GrpcMessageReader {
  readonly #frameReader = new FrameReader(PREFIX_LENGTH, readFrameLength);

  /**
   * Returns the messages that `chunk` completes.
   * @throws Error when the bytes are no message, or announce one that is too long
   */
  read(chunk: Buffer): Buffer[] {
    return this.#frameReader.read(chunk).map((frame) => frame.subarray(PREFIX_LENGTH));
  }
}

function readFrameLength(bytes: Buffer): number {
  if (bytes.readUInt8(0) !== 0) throw new Error('the server compressed a message although nobody asked it to');
  const length = bytes.readUInt32BE(1);
  if (length > MAX_MESSAGE_BYTES) {
    throw new Error(`the server announced a message of ${length} bytes: at most ${MAX_MESSAGE_BYTES} are taken`);
  }
  return PREFIX_LENGTH + length;
}
