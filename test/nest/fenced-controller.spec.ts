import { Body, Controller, Param, Post } from '@nestjs/common';
import { Locked } from 'nestjs-distributed-lock';
import { Fenced, fencedManager } from 'nestjs-distributed-lock/typeorm';
import { inMemory, listening } from './apps.js';
import { Crossing } from './crossing.js';
import { FencedShop, sellOne } from './fenced-shop.js';

const shop = new FencedShop();

describe('@Fenced on a controller', () => {
  @Controller('sales')
  class Sales {
    @Post(':id/purchases')
    @Fenced('sale_:id/:buyer')
    @Locked('lock_sale_:params.id')
    async buy(@Param('id') id: string, @Body('buyer') _buyer: string): Promise<string> {
      return sellOne(fencedManager(), id);
    }
  }

  it('answers 409 to a former holder, and sells to the others', async () => {
    const url = await listening({
      imports: [inMemory(new Crossing())],
      providers: [shop.provider],
      controllers: [Sales],
    });
    const buy = async (buyer: string): Promise<string> => {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(`${url}/sales/1/purchases`, {
        method: 'POST',
        headers,
        body: JSON.stringify({ buyer }),
      });
      return `${response.status} ${await response.text()}`;
    };
    expect(await buy('ann')).toBe('201 sold 1');
    await shop.overtake('sale_1/ben');
    expect(JSON.parse((await buy('ben')).slice(4))).toMatchObject({ statusCode: 409, code: 'LOCK_STALE_FENCE' });
    expect(JSON.parse((await buy('')).slice(4))).toMatchObject({ statusCode: 400, code: 'LOCK_CONFIGURATION' });
    expect(await shop.stock(1)).toBe(9);
  });
});
