import { describe, expect, it } from '@jest/globals';
import { argumentNames } from '../../lib/nest/argument-names.js';

const computed = 'we(ird';

class Sale {
  async none(): Promise<void> {}
  async one(id: string): Promise<string> {
    return id;
  }
  async defaults(id = ')', order = { a: [1, 2], b: '(' }, when = (x: number, y: number) => x + y): Promise<unknown> {
    return [id, order, when];
  }
  async destructured({ id }: { id: string }, [first, second]: string[], $last_1?: string): Promise<unknown> {
    return [id, first, second, $last_1];
  }
  async rest(id: string, ...more: string[]): Promise<unknown> {
    return [id, more];
  }
  async [computed](größe: number): Promise<number> {
    return größe;
  }
}

describe('the names of arguments', () => {
  it.each([
    ['none', [], false],
    ['one', ['id'], false],
    ['defaults', ['id', 'order', 'when'], false],
    ['destructured', [undefined, undefined, '$last_1'], false],
    ['rest', ['id'], true],
    [computed, ['größe'], false],
  ])('of %s are %j', (method, names, rest) => {
    expect(argumentNames(String(Reflect.get(Sale.prototype, method)))).toEqual({ names, rest });
  });

  it.each([
    ['async buy(/* id, */ order, // (count\n count) { return "(x)" }', ['order', 'count']],
    ['buy(a = \',\', b = `${1}(`, c = "\\")") {}', ['a', 'b', 'c']],
    ['function () { [native code] }', []],
    ['(id, count) => id', ['id', 'count']],
    ['buy(id, ) {}', ['id']],
  ])('of %s are %j', (source, names) => {
    expect(argumentNames(source).names).toEqual(names);
  });
});
