/** Field of a message to encode. An absent field means zero: neither zero nor `undefined` is written. */
export type Field = readonly [number: number, value: bigint | number | boolean | string | Uint8Array | undefined];

const VARINT = 0;
const FIXED_64 = 1;
const BYTES = 2;
const FIXED_32 = 5;

/**
 * Encodes a message of Protocol Buffers, as far as etcd needs them: https://protobuf.dev/programming-guides/encoding/
 */
export function encode(...fields: readonly Field[]): Buffer {
  const parts: Uint8Array[] = [];
  for (const [number, value] of fields) {
    if (value === undefined) continue;
    if (typeof value === 'string' || value instanceof Uint8Array) {
      const bytes = typeof value === 'string' ? Buffer.from(value) : value;
      parts.push(varint(BigInt(number * 8 + BYTES)), varint(BigInt(bytes.length)), bytes);
    } else if (BigInt(value) !== 0n) {
      parts.push(varint(BigInt(number * 8 + VARINT)), varint(BigInt(value)));
    }
  }
  return Buffer.concat(parts);
}

function varint(value: bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, value);
  for (; rest > 0x7fn; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80);
  bytes.push(Number(rest));
  return Uint8Array.from(bytes);
}

/** Message that was received. Unknown fields are skipped, so newer servers may send more. */
export class Message {
  readonly #fields = new Map<number, (bigint | Buffer)[]>();

  /** @throws Error when the bytes are no message */
  constructor(bytes: Buffer) {
    const reader = new Reader(bytes);
    while (!reader.isDone) {
      const tag = Number(reader.varint());
      const value = reader.value(tag & 7);
      const number = tag >>> 3;
      const values = this.#fields.get(number);
      if (values) values.push(value);
      else this.#fields.set(number, [value]);
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

class Reader {
  #position = 0;

  constructor(private readonly bytes: Buffer) {}

  get isDone(): boolean {
    return this.#position >= this.bytes.length;
  }

  varint(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.bytes[this.#position++];
      if (byte === undefined) break;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    throw new Error('etcd sent a number without an end');
  }

  value(type: number): bigint | Buffer {
    if (type === VARINT) return this.varint();
    if (type === BYTES) return this.take(Number(this.varint()));
    if (type === FIXED_64) return this.take(8);
    if (type === FIXED_32) return this.take(4);
    throw new Error(`etcd sent a field of the unknown type ${type}`);
  }

  take(length: number): Buffer {
    const end = this.#position + length;
    if (end > this.bytes.length) throw new Error('etcd sent a message that ends too early');
    const field = this.bytes.subarray(this.#position, end);
    this.#position = end;
    return field;
  }
}
