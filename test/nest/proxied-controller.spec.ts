import { Controller, Post } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { serving } from './apps.js';
import { Crossing } from './crossing.js';
import { text } from './http-text.js';

/** As libraries of aspects do it: functions of their own, which have the metadata of what they call. */
function proxied<T extends object>(instance: T): T {
  const get = (target: T, name: string | symbol): unknown => {
    const method: unknown = Reflect.get(target, name);
    if (typeof method !== 'function' || name === 'constructor') return method;
    const wrapped = (...args: unknown[]): unknown => Reflect.apply(method, target, args);
    for (const key of Reflect.getMetadataKeys(method))
      Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapped);
    return wrapped;
  };
  return new Proxy(instance, { get });
}

it('a controller that is a proxy takes its keys from the request', async () => {
  const crossing = new Crossing();
  @Controller()
  class Sales {
    constructor() {
      return proxied(this);
    }
    @Post('sales/:id')
    @Locked('sale_:params.id')
    async buy(): Promise<string> {
      return 'bought';
    }
  }
  const url = await serving(crossing, Sales);
  expect(await text(`${url}/sales/7`, { method: 'POST' })).toBe('201 bought');
  expect(crossing.keys).toEqual(['sale_7']);
});
