import {
  type CallHandler,
  ConflictException,
  Controller,
  type ExecutionContext,
  Injectable,
  type NestInterceptor,
  Param,
  Post,
  Req,
  UseInterceptors,
} from '@nestjs/common';
import { DistributedLockModule, LockService } from 'nestjs-distributed-lock';
import { typeorm } from 'nestjs-distributed-lock/typeorm';
import { catchError, from, lastValueFrom, mergeMap, type Observable } from 'rxjs';
import { DataSource, type QueryRunner } from 'typeorm';
import { listening } from '../../nest/apps.js';
import { describeServers } from './sql-world.js';

const STOCK = 10;
const BUYERS = 25;

interface SaleRequest {
  readonly params: { readonly id: string };
  runner: QueryRunner;
}

/** Begins a transaction for each request, and commits it when the handler has returned. */
@Injectable()
class TransactionInterceptor implements NestInterceptor {
  constructor(private readonly dataSource: DataSource) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const runner = this.dataSource.createQueryRunner();
    await runner.startTransaction();
    context.switchToHttp().getRequest<SaleRequest>().runner = runner;
    const end = async (how: 'commitTransaction' | 'rollbackTransaction'): Promise<void> => {
      await runner[how]();
      await runner.release();
    };
    return next.handle().pipe(
      mergeMap((result: unknown) => end('commitTransaction').then(() => result)),
      catchError(async (error: unknown) => {
        await end('rollbackTransaction');
        throw error;
      }),
    );
  }
}

/** As `docs/transactions.md` has it. */
@Injectable()
class SaleLock implements NestInterceptor {
  constructor(private readonly locks: LockService) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { params } = context.switchToHttp().getRequest<SaleRequest>();
    const sell = (): Promise<unknown> => lastValueFrom(next.handle(), { defaultValue: undefined });
    return from(this.locks.withLock(`sale_${params.id}`, sell));
  }
}

@Controller('sales')
@UseInterceptors(SaleLock, TransactionInterceptor)
class SalesController {
  @Post(':id')
  async buy(@Param('id') id: string, @Req() { runner }: SaleRequest): Promise<void> {
    const [row] = (await runner.query(`select n from stock where id = ${id}`)) as { n: number }[];
    if (!row || row.n === 0) throw new ConflictException('sold out');
    await runner.query(`update stock set n = ${row.n - 1} where id = ${id}`);
    await runner.query(`insert into sold values (${id})`);
  }
}

describeServers('a transaction of an interceptor', (world, type) => {
  it('that commits under the lock of an interceptor before it sells what there is', async () => {
    const dataSource = await new DataSource({ type, url: world.url, poolSize: BUYERS + 5 }).initialize();
    await dataSource.query('create table stock (id integer primary key, n integer not null)');
    await dataSource.query('create table sold (id integer not null)');
    await dataSource.query(`insert into stock values (1, ${STOCK})`);
    const backend = typeorm({ dataSource: { options: { type, url: world.url } }, synchronize: true });
    const url = await listening({
      imports: [DistributedLockModule.forRoot({ backend: backend(), defaults: { waitMs: 30_000 } })],
      controllers: [SalesController],
      providers: [{ provide: DataSource, useValue: dataSource }, TransactionInterceptor, SaleLock],
    });
    const buy = (): Promise<number> => fetch(`${url}/sales/1`, { method: 'POST' }).then(({ status }) => status);
    const statuses = await Promise.all(Array.from({ length: BUYERS }, buy));
    expect(statuses.filter((status) => status === 201)).toHaveLength(STOCK);
    expect(statuses.filter((status) => status === 409)).toHaveLength(BUYERS - STOCK);
    await expect(dataSource.query('select id from sold')).resolves.toHaveLength(STOCK);
    await dataSource.destroy();
  });
});
