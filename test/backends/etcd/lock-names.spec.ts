import fc from 'fast-check';
import { EtcdLockNames } from '../../../lib/backends/etcd/lock-names.js';

const names = new EtcdLockNames('lock');
/** Keys with more of the characters that could matter than chance would bring. */
const key = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1 }),
  fc.string({ unit: fc.constantFrom('a', '/', '%', '2', 'F', '0', '@', '\0', '\u007f'), minLength: 1 }),
);

/** Compares names as etcd does. */
function contains({ key: from, end }: { readonly key: string; readonly end: string }, name: string): boolean {
  const bytes = Buffer.from(name);
  return Buffer.compare(Buffer.from(from), bytes) <= 0 && Buffer.compare(bytes, Buffer.from(end)) < 0;
}

describe('the names of locks on etcd', () => {
  it('are not of another program, whose percent sign may be of no code', () => {
    expect(names.parseKey('lock/100%/0@1')).toBeUndefined();
    expect(names.parseKey('lock/100%25/0@1')).toBe('100%');
  });

  it('E6: are of one key each: no two keys share a place, and no range has a part of another', () => {
    fc.assert(
      fc.property(key, key, fc.nat(), fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }), (one, other, number, lease) => {
        const place = names.entryName(one, number, lease);
        expect(contains(names.queueRange(one), place)).toBe(true);
        expect(contains(names.queueRange(other), place)).toBe(one === other);
        expect(contains(names.queueRange(one), names.sessionKeyName(lease))).toBe(false);
        expect(place.startsWith('lock/')).toBe(true);
      }),
      { numRuns: 2_000 },
    );
  });

  it('E6: are apart for "a" and "a/b"', () => {
    expect(contains(names.queueRange('a'), names.entryName('a/b', 0, 1n))).toBe(false);
  });

  it('can be read', () => {
    expect(names.entryName('sale:42 é', 0, 255n)).toBe('lock/sale:42 é/0@ff');
    expect(names.entryName('a/b\n%', 7, 1n)).toBe('lock/a%2Fb%0A%25/7@1');
  });
});
