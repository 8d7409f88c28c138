import fc from 'fast-check';
import { parseTemplate } from '../../lib/nest/keys/key-template.js';
import { compileTemplate } from '../../lib/nest/keys/locked-keys.js';

function render(source: string, values: readonly unknown[]): string {
  const rest = [...values];
  return compileTemplate(parseTemplate(source), 'Sale.sell', () => () => rest.shift())([], undefined);
}

describe('a key template', () => {
  it.each([
    ['lock_sale_:id', ['id']],
    ['a_:x_:y', ['x', 'y']],
    [':user_id.json', ['user_id.json']],
    [':{user_id}.json', ['user_id']],
    [':dto.lines.0.sku.', ['dto.lines.0.sku']],
    [':_id/:$x/:größe', ['_id', '$x', 'größe']],
    [String.raw`a\:b\\:c::d: e:1:`, ['c', 'd']],
    ['restock', []],
  ])('%s has the placeholders %j', (source, paths) => {
    expect(parseTemplate(source).placeholders.map(({ path }) => path.join('.'))).toEqual(paths);
  });

  it.each([
    ['lock_sale_:id', ['42'], 'lock_sale_42'],
    ['lock_sale_:id', [42n], 'lock_sale_42'],
    ['lock_:id', ['8f14e45f-ceea-4e7a-9f3b-1c2d3e4f5a6b'], 'lock_8f14e45f-ceea-4e7a-9f3b-1c2d3e4f5a6b'],
    ['mail_:who', ['ann.smith@example.org'], 'mail_ann.smith@example.org'],
    ['city_:name', ['Zürich 東京'], 'city_Zürich%20東京'],
    ['a_:x_:y', ['1_2', 3], 'a_1%5F2_3'],
    [':{x}-:y', ['1-2', '3-4'], '1%2D2-3-4'],
    [':{x}b:{y}b', ['abba', 'b'], 'a%62%62ab%62b'],
    ['flag_:on/:n', [true, -1.5], 'flag_true/-1.5'],
    [String.raw`a\:b\\:c:`, ['1'], String.raw`a:b\1:`],
  ])('%s of %p is %s', (source, values, key) => {
    expect(render(source, values)).toBe(key);
  });

  it.each([
    [undefined, 'is undefined'],
    [null, 'is null'],
    ['', 'is empty'],
    [NaN, 'is NaN'],
    [-Infinity, 'is -Infinity'],
    [{}, 'is an object'],
    [Object('7'), 'is a String'],
    [{ toString: () => '7' }, 'is an object'],
    [['7'], 'is an array'],
    [new Date(Number.NaN), 'is a Date'],
    [Symbol('7'), 'is a symbol'],
    [() => '7', 'is a function'],
    ['\ud800', 'is no well-formed Unicode'],
    ['x'.repeat(100_000), 'has 100000 characters'],
    ['☃'.repeat(4_000), 'may have 4096 bytes'],
  ])('refuses the value %p', (value, why) => {
    const attempt = (): string => render('lock_:id', [value]);
    expect(attempt).toThrow(why);
    expect(attempt).toThrow(expect.objectContaining({ code: 'LOCK_CONFIGURATION', option: 'key' }));
  });

  it('keeps a long or hostile value out of the message', () => {
    try {
      render('lock_:id', ['☃'.repeat(4_000)]);
    } catch (error) {
      expect(String(error).length).toBeLessThan(400);
    }
    expect.assertions(1);
  });

  it.each(['*', 'a\nb', '\0', '../x', 'a b', '__proto__', '{x}', '%', '\u202e', 'a:b', 'a|b', '🔒'])(
    'lets %j name one lock of its own',
    (value) => {
      const key = render('lock_:id', [value]);
      expect(key).toMatch(/^lock_[\p{L}\p{M}\p{N}.@%-]+$/u);
      expect(key).not.toBe(render('lock_:id', ['x']));
    },
  );

  it('keeps the normal forms of a text apart', () => {
    expect(render(':id', ['é'.normalize('NFC')])).not.toBe(render(':id', ['é'.normalize('NFD')]));
  });

  it('gives two lists of values one key only if they are the same', () => {
    const letter = fc.constantFrom('a', 'b', '1', '2', '5', 'F', '_', '%', '-', '.', ':', '/', 'é', '🔒', '\u0301');
    const text = fc.string({ unit: letter, minLength: 1, maxLength: 5 });
    const value = fc.oneof(
      text,
      fc.string({ minLength: 1 }).filter((found) => found.isWellFormed()),
      fc.integer(),
      fc.boolean(),
    );
    const literal = fc.string({ unit: letter.filter((found) => found !== ':'), minLength: 1, maxLength: 2 });
    const between = literal.filter((found) => !found.startsWith('%'));
    const lists = fc.tuple(fc.array(between, { minLength: 1, maxLength: 3 }), literal).chain(([literals, first]) =>
      fc.record({
        source: fc.constant(`${first}${literals.map((after, index) => `:{v${index}}${after}`).join('')}:{last}`),
        one: fc.array(value, { minLength: literals.length + 1, maxLength: literals.length + 1 }),
        two: fc.array(value, { minLength: literals.length + 1, maxLength: literals.length + 1 }),
      }),
    );
    fc.assert(
      fc.property(lists, ({ source, one, two }) => {
        const same = one.every((first, index) => String(first) === String(two[index]));
        return (render(source, one) === render(source, two)) === same;
      }),
      { numRuns: 2_000 },
    );
  });

  it('gives a list of values no key that another split of the same text has', () => {
    const letter = fc.constantFrom('a', '_', '%', '5', 'F', '-');
    const whole = fc.string({ unit: letter, minLength: 4, maxLength: 8 });
    const delimiter = fc.constantFrom('_', '-', 'a', '5', 'F', '_%', 'a5');
    const splits = fc.record({ whole, delimiter, at: fc.nat(7), other: fc.nat(7) });
    fc.assert(
      fc.property(splits, ({ whole: text, delimiter: between, at, other }) => {
        const source = `:{x}${between}:{y}`;
        const cut = (where: number): string[] => [text.slice(0, where), text.slice(where)];
        const [one, two] = [cut(1 + (at % (text.length - 1))), cut(1 + (other % (text.length - 1)))];
        return (render(source, one) === render(source, two)) === (one[0] === two[0]);
      }),
      { numRuns: 2_000 },
    );
  });
});
