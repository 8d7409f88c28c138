import { describe, expect, it } from '@jest/globals';
import { getFirstWordName, KeyTemplateNames } from '../../lib/nest/locked/key-template-names.js';
import { parseTemplate } from '../../lib/nest/keys/key-template.js';

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
