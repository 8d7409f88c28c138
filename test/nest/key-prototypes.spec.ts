import { Injectable } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

const crossing = new Crossing();

describe('a key', () => {
  @Injectable()
  class Orders {
    @Locked('a/:order.id')
    path(order: { id?: string }): Promise<string> {
      return crossing.cross(`${order.id}`);
    }
    @Locked('b/:id')
    only(order: { id?: string }): Promise<string> {
      return crossing.cross(`${order.id}`);
    }
    @Locked('c/:order.__proto__.id')
    prototype(order: object): Promise<string> {
      return crossing.cross(`${Object.keys(order).length}`);
    }
  }

  it('is never taken from a prototype', async () => {
    const orders = (await providing(crossing, Orders)).get(Orders);
    const inheriting = Object.create({ id: 'inherited' }) as object;
    const refused = { code: 'LOCK_CONFIGURATION', option: 'key' };
    await expect(orders.path(inheriting)).rejects.toMatchObject(refused);
    await expect(orders.only(inheriting)).rejects.toMatchObject(refused);
    await expect(orders.prototype(inheriting)).rejects.toMatchObject(refused);
    expect(await orders.prototype(JSON.parse('{"__proto__":{"id":"own"}}') as object)).toBe('1');
    expect(crossing.keys).toEqual(['c/own']);
  });
});
