import { Injectable } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { providing } from './apps.js';
import { Crossing } from './crossing.js';

/** As CQRS writes them; documents of Mongoose have their fields in getters of a prototype, too. */
class BuyCommand {
  readonly #id: string;
  constructor(id: string) {
    this.#id = id;
  }
  get id(): string {
    return this.#id;
  }
  sku(): string {
    return this.#id;
  }
}

class BuyTwoCommand extends BuyCommand {}

@Injectable()
class BuyHandler {
  @Locked('sale_:command.id')
  async execute(command: BuyCommand): Promise<string> {
    return command.id;
  }
  @Locked('sale_:id')
  async property(command: BuyCommand): Promise<string> {
    return command.id;
  }
  @Locked('sale_:command.sku')
  async method(command: BuyCommand): Promise<string> {
    return command.id;
  }
  @Locked('sale_:body.__proto__')
  async prototype(body: object): Promise<object> {
    return body;
  }
  @Locked('sale_:body.toString.name')
  async inherited(body: object): Promise<object> {
    return body;
  }
}

it('a key is taken from the getters of classes, and from nothing else that a prototype has', async () => {
  const crossing = new Crossing();
  const handler = (await providing(crossing, BuyHandler)).get(BuyHandler);
  await handler.execute(new BuyCommand('a1'));
  await handler.property(new BuyTwoCommand('b2'));
  expect(crossing.keys).toEqual(['sale_a1', 'sale_b2']);
  await expect(handler.method(new BuyCommand('a1'))).rejects.toThrow('is undefined, which names no lock');
  await expect(handler.prototype({})).rejects.toThrow('is undefined, which names no lock');
  await expect(handler.inherited({})).rejects.toThrow('is undefined, which names no lock');
  expect(crossing.keys).toHaveLength(2);
});
