/** Field of a message. Neither zero nor `undefined` is written, because an absent field means zero. */
export type Field = readonly [number: number, value: bigint | number | boolean | string | Uint8Array | undefined];

// Wire types: they tell how a field's value is encoded.
const VARINT = 0;
const FIXED_64 = 1;
const BYTES = 2;
const FIXED_32 = 5;

/** Encodes a message of Protocol Buffers: https://protobuf.dev/programming-guides/encoding/ */
export function encode(...fields: readonly Field[]): Buffer {
  const encodedParts: Uint8Array[] = [];
  for (const [fieldNumber, value] of fields) {
    if (value === undefined) continue;
    if (typeof value === 'string' || value instanceof Uint8Array) {
      const bytes = typeof value === 'string' ? Buffer.from(value) : value;
      encodedParts.push(encodeVarint(BigInt(fieldNumber * 8 + BYTES)), encodeVarint(BigInt(bytes.length)), bytes);
    } else if (BigInt(value) !== 0n) {
      encodedParts.push(encodeVarint(BigInt(fieldNumber * 8 + VARINT)), encodeVarint(BigInt(value)));
    }
  }
  return Buffer.concat(encodedParts);
}

function encodeVarint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

export class Message {
  readonly #fields = new Map<number, (bigint | Buffer)[]>();

  /** @throws Error when the bytes are no message */
  constructor(bytes: Buffer) {
    const reader = new FieldReader(bytes);
    while (!reader.isDone) {
      const tag = Number(reader.readVarint());
      const value = reader.readValue(tag & 7);
      const fieldNumber = tag >>> 3;
      const values = this.#fields.get(fieldNumber);
      if (values) values.push(value);
      else this.#fields.set(fieldNumber, [value]);
    }
  }

  integer(field: number): bigint {
    const value = this.#fields.get(field)?.at(-1) ?? 0n;
    return typeof value === 'bigint' ? BigInt.asIntN(64, value) : 0n;
  }

  flag(field: number): boolean {
    return this.integer(field) !== 0n;
  }

  text(field: number): string {
    const value = this.#fields.get(field)?.at(-1);
    return value instanceof Buffer ? value.toString() : '';
  }

  texts(field: number): string[] {
    const values = this.#fields.get(field) ?? [];
    return values.map(String);
  }

  message(field: number): Message | undefined {
    return this.messages(field).at(-1);
  }

  messages(field: number): Message[] {
    const values = this.#fields.get(field) ?? [];
    return values.flatMap((value) => (value instanceof Buffer ? new Message(value) : []));
  }
}

class FieldReader {
  #position = 0;

  constructor(private readonly bytes: Buffer) {}

  get isDone(): boolean {
    return this.#position >= this.bytes.length;
  }

  readVarint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.#position++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error('etcd sent a number without an end');
  }

  readValue(type: number): bigint | Buffer {
    if (type === VARINT) return this.readVarint();
    if (type === BYTES) return this.takeBytes(Number(this.readVarint()));
    if (type === FIXED_64) return this.takeBytes(8);
    if (type === FIXED_32) return this.takeBytes(4);
    throw new Error(`etcd sent a field of the unknown type ${type}`);
  }

  takeBytes(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.bytes.length) throw new Error('etcd sent a message that ends too early');
    const field = this.bytes.subarray(this.#position, end);
    this.#position = end;
    return field;
  }
}
