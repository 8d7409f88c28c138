import { getFirstWordName, KeyTemplateNames } from '../../lib/nest/locked/key-template-names.js';
import { parseTemplate } from '../../lib/nest/keys/key-template.js';
import { timeLimitOf } from '../support/machine.js';

describe('the names that keys share', () => {
  const names = new KeyTemplateNames(
    ['sale_:id', ':tenant/:id', 'sale_:id/seat_:seat', 'f(x)_:id', 'restock'].map(parseTemplate),
  );

  it.each([
    ['sale_42', 'sale_:id'],
    ['sale_%E2%82%AC', 'sale_:id'],
    ['sale_42/seat_A7', 'sale_:id/seat_:seat'],
    ['acme/7', ':tenant/:id'],
    ['f(x)_1', 'f(x)_:id'],
    ['restock', 'restock'],
  ])('%s is one of %s', (key, name) => expect(names.nameOf(key)).toBe(name));

  it.each([
    ['job:42:part:7', 'job:*:part:*'],
    ['order_8f14e45f-ceea-467f-a8b1-0123456789ab', 'order_*'],
    ['plain', 'plain'],
  ])('%s, of no template, is one of %s', (key, name) => expect(names.nameOf(key)).toBe(name));

  it('tells at once that a long key is of no template', () => {
    const dotted = new KeyTemplateNames([parseTemplate('order.:a.:b.:c')]);
    const start = performance.now();
    expect(dotted.templateOf(`order.${'.'.repeat(1_000)}_x`)).toBeUndefined();
    expect(performance.now() - start).toTakeLessThan(timeLimitOf(100));
  });

  it.each([
    ['order.:a.:b', 'order.1%2E5.x'],
    [':{round}F:next', '%2FFx'],
    [':{place}st', '1st'],
    [':id-:part', '%2D1-%F0%9F%94%921-2'],
  ])('%s made %s', (template, key) => {
    expect(new KeyTemplateNames([parseTemplate(template)]).templateOf(key)).toBe(template);
  });

  it.each([
    ['order.:a.:{b}.end', 'order.1.2.3.end'],
    ['order.:a.:b', 'order.1.'],
    ['sale_:id', 'sale_50%'],
  ])('%s cannot have made %s', (template, key) => {
    expect(new KeyTemplateNames([parseTemplate(template)]).templateOf(key)).toBeUndefined();
  });

  it.each([
    ['user:alice@example.com', 'user:*'],
    ['user_alice', 'user_*'],
    ['order-64b0c1', 'order-*'],
    ['job:42:part:7', 'job:*'],
    ['42/seat', '*/*'],
    ['8f14e45f-ceea-467f-a8b1-0123456789ab', '*'],
    ['nightly', 'nightly'],
    ['a\nb', 'a\n*'],
  ])('%j, of no template, shows others no more than %j', (key, name) => expect(getFirstWordName(key)).toBe(name));
});
