import { readArgumentNames } from '../../lib/nest/keys/argument-names.js';

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
  ])('of %s are %j', (method, names, hasRestParameter) => {
    expect(readArgumentNames(String(Reflect.get(Sale.prototype, method)))).toMatchObject({ names, hasRestParameter });
  });

  it.each([
    ['async buy(/* id, */ order, // (count\n count) { return "(x)" }', ['order', 'count']],
    ['buy(one = \',\', two = `${1}(`, three = "\\")") {}', ['one', 'two', 'three']],
    ['buy(re = /[(]/, id) {}', ['re', 'id']],
    ['buy(re = /* , */ /,\\/[/)]"/giu, half = 1 / 2, third = (1) / 3, id) {}', ['re', 'half', 'third', 'id']],
    ['buy(text = `a ${`(${{ b: "}" }.b}`} /`, id) {}', ['text', 'id']],
    ['function () { [native code] }', []],
    ['(id, count) => id', ['id', 'count']],
    ['buy(id, ) {}', ['id']],
    // No minifier leaves a name of five letters.
    ['async move(id,order){return id}', ['id', 'order']],
    ['run(sku_1) { return __awaiter(this, arguments, void 0, function* (sku, opts = {}) { }); }', ['sku', 'opts']],
  ])('of %s are %j', (source, names) => {
    expect(readArgumentNames(source).names).toEqual(names);
  });

  it.each([
    ['async move(t, e) { return e }', [undefined, undefined]],
    ['async move(id, to, order, e) { return e }', ['id', 'to', 'order', undefined]],
    ['async move(id,to,me,e){return e}', [undefined, undefined, undefined, undefined]],
    ['async move(id){return id}', [undefined]],
  ])('that a minifier may have made in %s are none', (source, names) => {
    expect(readArgumentNames(source).names).toEqual(names);
  });
});
