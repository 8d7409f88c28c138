import { describe, expect, it } from '@jest/globals';
import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  HttpException,
  type INestApplication,
  Post,
  type Type,
  UseFilters,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { DistributedLockModule, Locked, LockService, LockTimeoutError } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { application, listen } from './apps.js';

describe('lock errors under a filter that catches everything', () => {
  const BUSY = {
    statusCode: 423,
    error: 'Locked',
    code: 'LOCK_TIMEOUT',
    message: 'Locked by another request, try again later',
  };

  @Controller()
  class Sales {
    @Post('buy')
    @Locked('sale', { waitMs: 0 })
    async buy(): Promise<void> {}
  }

  @Catch()
  class CatchAll implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost): void {
      const status = error instanceof HttpException ? error.getStatus() : 500;
      host.switchToHttp().getResponse().status(status).json('caught');
    }
  }

  @UseFilters(CatchAll)
  @Controller()
  class CatchingSales extends Sales {}

  @Catch(LockTimeoutError)
  class Own implements ExceptionFilter {
    catch(error: LockTimeoutError, host: ArgumentsHost): void {
      host.switchToHttp().getResponse().status(409).json(error.code);
    }
  }

  @UseFilters(new Own())
  @Controller()
  class OwnSales extends Sales {}

  async function buying(
    controller: Type,
    exceptionFilter: boolean,
    filter?: (app: INestApplication) => ExceptionFilter,
  ) {
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter });
    const app = await application({ imports: [module], controllers: [controller] });
    if (filter) app.useGlobalFilters(filter(app));
    const url = await listen(app);
    // Closing waits for the holder.
    await using _busy = await app.get(LockService).acquire('sale');
    const response = await fetch(`${url}/buy`, { method: 'POST' });
    return [response.status, await response.json()];
  }

  it('keep their answer, whoever it is', async () => {
    expect(await buying(Sales, true, () => new CatchAll())).toEqual([423, BUSY]);
    expect(await buying(Sales, true, (app) => new BaseExceptionFilter(app.getHttpAdapter()))).toEqual([423, BUSY]);
    expect(await buying(CatchingSales, true)).toEqual([423, BUSY]);
  });

  it('are left to a filter of the class for just such errors', async () => {
    expect(await buying(OwnSales, true, () => new CatchAll())).toEqual([409, 'LOCK_TIMEOUT']);
  });

  it('are left to all of them where ours is turned off', async () => {
    expect(await buying(Sales, false, () => new CatchAll())).toEqual([500, 'caught']);
    expect(await buying(Sales, false, () => new Own())).toEqual([409, 'LOCK_TIMEOUT']);
  });
});
