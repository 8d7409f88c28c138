import { Controller, Get, Param } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { ExpressAdapter } from '@nestjs/platform-express';
import { Locked, LockKey } from 'nestjs-distributed-lock';
import { inMemory, listening } from './apps.js';
import { Crossing } from './crossing.js';

describe('the value of a placeholder', () => {
  it.each([
    ['Express', () => new ExpressAdapter()],
    ['Fastify', () => new FastifyAdapter()],
  ])('is the path of a wildcard, on %s', async (_, adapter) => {
    const crossing = new Crossing();
    const star = adapter() instanceof FastifyAdapter ? '*' : '*path';
    const name = star === '*' ? '*' : 'path';
    @Controller()
    class Files {
      @Get(`named/${star}`)
      @Locked('n_:path')
      async named(@LockKey('path') @Param(name) path: string): Promise<string> {
        return path;
      }
    }
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Files] }, adapter());
    expect((await fetch(`${url}/named/a/b_c`)).status).toBe(200);
    expect(crossing.keys).toEqual(['n_a%2Fb%5Fc']);
  });

  it('is the path of a wildcard that only the route names', async () => {
    const crossing = new Crossing();
    @Controller()
    class Files {
      @Get('files/*path')
      @Locked('f_:path')
      async file(): Promise<string> {
        return 'file';
      }

      @Get('parts/*path')
      @Locked('p_:params.path')
      async parts(): Promise<string> {
        return 'parts';
      }
    }
    const url = await listening({ imports: [inMemory(crossing)], controllers: [Files] });
    expect((await fetch(`${url}/files/a/b`)).status).toBe(200);
    expect((await fetch(`${url}/parts/a/b`)).status).toBe(200);
    expect(crossing.keys).toEqual(['f_a%2Fb', 'p_a%2Fb']);
  });
});
