import fc from 'fast-check';
import { encodeFrame, GrpcMessageReader } from '../../../lib/backends/etcd/transport/grpc-frames.js';
import { encode, Message } from '../../../lib/backends/etcd/transport/protobuf.js';

describe('the wire format of etcd', () => {
  it('E7: keeps every 64-bit number exact', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (number) => {
        expect(new Message(encode([7, number])).integer(7)).toBe(number);
      }),
    );
    expect(new Message(encode([1, 2n ** 53n + 1n])).integer(1)).toBe(9_007_199_254_740_993n);
  });

  it('keeps texts, messages and their order', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' })), fc.nat(), (texts, number) => {
        const message = new Message(encode(...texts.map((text) => [11, encode([1, text], [2, number])] as const)));
        expect(message.messages(11).map((inner) => inner.text(1))).toEqual(texts);
        expect(message.messages(11).every((inner) => inner.integer(2) === BigInt(number))).toBe(true);
      }),
    );
  });

  it('agrees with the documentation of the format', () => {
    // https://protobuf.dev/programming-guides/encoding/
    expect(encode([1, 150]).toString('hex')).toBe('089601');
    expect(encode([2, 'testing']).toString('hex')).toBe('120774657374696e67');
    expect(encode([64, 'end']).toString('hex')).toBe('820403656e64');
  });

  it('takes what is absent for nothing, and skips what it does not know', () => {
    const message = new Message(Buffer.from(`0a0161180121${'00'.repeat(8)}2d${'00'.repeat(4)}`, 'hex'));
    expect(message.text(1)).toBe('a');
    expect(message.flag(3)).toBe(true);
    expect([message.integer(9), message.text(9), message.messages(9), message.message(9)]).toEqual([
      0n,
      '',
      [],
      undefined,
    ]);
  });

  it('refuses bytes that are no message, whatever they are', () => {
    for (const broken of ['0a05', '08', `08${'ff'.repeat(11)}`, '0b', `0a${'ff'.repeat(9)}01`]) {
      expect(() => new Message(Buffer.from(broken, 'hex'))).toThrow(/^etcd sent/u);
    }
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        try {
          new Message(Buffer.from(bytes)).messages(1);
        } catch (error) {
          expect(String(error)).toContain('etcd sent');
        }
      }),
    );
  });
});

describe('the frames of gRPC', () => {
  it('are put together from whatever pieces they arrive in', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array()), fc.integer({ min: 1, max: 9 }), (messages, size) => {
        const bytes = Buffer.concat(messages.map((message) => encodeFrame(Buffer.from(message))));
        const frames = new GrpcMessageReader();
        const taken: Buffer[] = [];
        for (let at = 0; at < bytes.length; at += size) taken.push(...frames.read(bytes.subarray(at, at + size)));
        expect(taken.map((message) => [...message])).toEqual(messages.map((message) => [...message]));
      }),
    );
  });

  it('may have 4 MiB, and what announces more is refused before it arrives', () => {
    const [longest, tooLong] = [Buffer.alloc(5), Buffer.alloc(5)];
    longest.writeUInt32BE(4 * 1024 * 1024, 1);
    tooLong.writeUInt32BE(4 * 1024 * 1024 + 1, 1);
    expect(new GrpcMessageReader().read(longest)).toEqual([]);
    expect(() => new GrpcMessageReader().read(tooLong)).toThrow('announced a message of 4194305 bytes');
  });

  it('that arrive in very many pieces cost no more than their bytes', () => {
    const bytes = encodeFrame(Buffer.alloc(4 * 1024 * 1024));
    const frames = new GrpcMessageReader();
    const before = process.cpuUsage();
    let taken: Buffer[] = [];
    for (let at = 0; at < bytes.length; at += 512) taken = frames.read(bytes.subarray(at, at + 512));
    const { user, system } = process.cpuUsage(before);
    expect(taken.map(({ length }) => length)).toEqual([4 * 1024 * 1024]);
    // Joined for each piece, it would be 17 GB that are copied.
    expect(user + system).toBeLessThan(1_000_000);
  });
});
