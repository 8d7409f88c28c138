import { STORED_KEY_BYTES, toStoredKey } from '../../../lib/backends/sql/tables/stored-key.js';

describe('storedKey', () => {
  it('keeps what fits as it is', () => {
    for (const key of ['k', ' ', 'x'.repeat(512), '\u4f60'.repeat(170)]) expect(toStoredKey(key)).toBe(key);
  });

  it('keeps the beginning of what does not, without half a character, and fits', () => {
    for (const character of ['x', '\u00e9', '\u4f60', '\u{1f512}', '\ufffd']) {
      for (const lead of ['', 'a', 'ab', 'abc']) {
        const stored = toStoredKey(lead + character.repeat(1_000));
        expect(stored).toMatch(/^(?:abc|ab|a|)(?:x+|\u00e9+|\u4f60+|\u{1f512}+|\ufffd+)\u2026 sha256:[0-9a-f]{64}$/u);
        expect(Buffer.byteLength(stored)).toBeLessThanOrEqual(STORED_KEY_BYTES);
        // Longer than every key that is kept as it is, so that none can look like it.
        expect(Buffer.byteLength(stored)).toBeGreaterThan(512);
      }
    }
  });

  it('tells long keys apart that differ in their last byte', () => {
    expect(toStoredKey(`${'x'.repeat(4_000)}a`)).not.toBe(toStoredKey(`${'x'.repeat(4_000)}b`));
  });
});
