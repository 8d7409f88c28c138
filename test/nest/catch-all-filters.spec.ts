import {
  type ArgumentsHost,
  type CallHandler,
  type CanActivate,
  Catch,
  Controller,
  type ExceptionFilter,
  type ExecutionContext,
  HttpException,
  type INestApplication,
  Injectable,
  type NestInterceptor,
  Post,
  type Type,
  UseFilters,
  UseGuards,
  UseInterceptors,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { DistributedLockModule, Locked, LockService, LockTimeoutError } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { catchError, type Observable, of } from 'rxjs';
import { application, listen } from './apps.js';

describe('lock errors under a filter that catches everything', () => {
  const BUSY = {
    statusCode: 423,
    error: 'Locked',
    code: 'LOCK_TIMEOUT',
    message: 'Locked by another request, try again later',
  };

  @Injectable()
  class Stock {
    @Locked('sale', { waitMs: 0 })
    async reserve(): Promise<void> {}
  }

  @Injectable()
  class LockingGuard implements CanActivate {
    constructor(private readonly stock: Stock) {}
    async canActivate(): Promise<boolean> {
      await this.stock.reserve();
      return true;
    }
  }

  @Injectable()
  class Rescue implements NestInterceptor {
    intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
      return next.handle().pipe(catchError((error: unknown) => of(error instanceof LockTimeoutError)));
    }
  }

  @Controller()
  class Sales {
    constructor(
      private readonly stock: Stock,
      private readonly locks: LockService,
    ) {}
    @Post('buy')
    @Locked('sale', { waitMs: 0 })
    async buy(): Promise<void> {}
    @Post('service')
    async service(): Promise<void> {
      await this.stock.reserve();
    }
    @Post('core')
    async core(): Promise<void> {
      await this.locks.withLock('sale', () => undefined, { waitMs: 0 });
    }
    @UseGuards(LockingGuard)
    @Post('guard')
    async guard(): Promise<void> {}
    @UseInterceptors(Rescue)
    @Post('rescued')
    async rescued(): Promise<void> {
      await this.stock.reserve();
    }
  }

  const ROUTES = ['buy', 'service', 'core'];

  /** As applications write it: an answer of their own shape for everything. */
  @Catch()
  class CatchAll implements ExceptionFilter {
    catch(error: unknown, host: ArgumentsHost): void {
      const [status, body] =
        error instanceof HttpException ? [error.getStatus(), error.getResponse()] : [500, String(error)];
      host.switchToHttp().getResponse().status(status).json({ caught: body });
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
    route: string,
    controller: Type,
    exceptionFilter: boolean,
    filter?: (app: INestApplication) => ExceptionFilter,
  ) {
    const module = DistributedLockModule.forRoot({ backend: memory(), exceptionFilter });
    const app = await application({ imports: [module], controllers: [controller], providers: [Stock] });
    if (filter) app.useGlobalFilters(filter(app));
    const url = await listen(app);
    // Closing waits for the holder.
    await using _busy = await app.get(LockService).acquire('sale');
    const response = await fetch(`${url}/${route}`, { method: 'POST' });
    return [response.status, response.headers.get('retry-after'), await response.json()];
  }

  it.each(ROUTES)('are exceptions of HTTP to it, from "%s"', async (route) => {
    const caught = [423, '1', { caught: BUSY }];
    expect(await buying(route, Sales, true, () => new CatchAll())).toEqual(caught);
    expect(await buying(route, CatchingSales, true)).toEqual(caught);
    const extending = (app: INestApplication): ExceptionFilter => new BaseExceptionFilter(app.getHttpAdapter());
    expect(await buying(route, Sales, true, extending)).toEqual([423, '1', BUSY]);
    expect(await buying(route, Sales, true)).toEqual([423, '1', BUSY]);
  });

  it.each(ROUTES)('are left to a filter of the class or the application that names them, from "%s"', async (route) => {
    expect(await buying(route, OwnSales, true, () => new CatchAll())).toEqual([409, null, 'LOCK_TIMEOUT']);
    expect(await buying(route, Sales, true, () => new Own())).toEqual([409, null, 'LOCK_TIMEOUT']);
  });

  it('are answered where a guard throws them, which no interceptor sees', async () => {
    expect(await buying('guard', Sales, true)).toEqual([423, '1', BUSY]);
    expect(await buying('guard', Sales, true, () => new Own())).toEqual([409, null, 'LOCK_TIMEOUT']);
  });

  it('are themselves to interceptors of the handler', async () => {
    expect(await buying('rescued', Sales, true, () => new CatchAll())).toEqual([201, null, true]);
  });

  it.each(ROUTES)('stay what they are where the option says so, from "%s"', async (route) => {
    const [status, , body] = await buying(route, Sales, false, () => new CatchAll());
    expect([status, body]).toEqual([500, { caught: expect.stringContaining('"sale" is held') }]);
    expect(await buying(route, Sales, false, () => new Own())).toEqual([409, null, 'LOCK_TIMEOUT']);
  });
});
