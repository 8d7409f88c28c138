import { itemNames, serverListName } from '../../../lib/backends/memcached/item-names.js';
import { describeWanted } from '../../support/wanted-backends.js';

const HOSTILE = [
  'a\r\nflush_all\r\n',
  'a b',
  ' ',
  'tab\tbed',
  'nul\0byte',
  'caf\u00e9',
  'cafe\u0301',
  '\u{1f512}',
  'x'.repeat(251),
  'x'.repeat(4_096),
  'l:x',
  'f:x',
  '#x',
  ':l:x',
  'servers',
];

describeWanted(['memcached'], 'M5: names', () => {
  it.each(HOSTILE)('are 1 to 250 bytes of printable ASCII: %j', (key) => {
    for (const name of Object.values(itemNames('p'.repeat(100), key))) expect(name).toMatch(/^[!-~]{1,250}$/);
  });

  it('are those of one lock each, and of one prefix', () => {
    const keys = [...HOSTILE, 'x', 'y', 'lock', 'X'];
    const hashed = keys.map((key) => itemNames('lock', key).lease.split('#')[1] ?? 'x');
    const all = ['lock', 'lock.l', 'lock-l'].flatMap((prefix) => [
      serverListName(prefix),
      // Keys include the names, or the hashes, of other keys.
      ...[...keys, ...hashed.slice(0, 3), ...keys.map((key) => itemNames('lock', key).lease)].flatMap((key) =>
        Object.values(itemNames(prefix, key)),
      ),
    ]);
    expect(new Set(all).size).toBe(all.length);
  });

  it('are readable where they can be', () => {
    expect(itemNames('lock', 'sale_42')).toEqual({ lease: 'lock:l:sale_42', counter: 'lock:f:sale_42' });
    expect(itemNames('lock', 'x'.repeat(243)).lease).toHaveLength(250);
    expect(itemNames('lock', 'x'.repeat(244)).lease).toMatch(/^lock:l#[\w-]{43}$/);
  });
});
