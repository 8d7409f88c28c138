import { Controller, Injectable, Module, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  DISTRIBUTED_LOCK_OPTIONS,
  DistributedLockModule,
  type LockBackend,
  Locked,
  LockService,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import {
  getTestLockBackendToken,
  LockTestingModule,
  ManualClock,
  TestLockBackend,
} from 'nestjs-distributed-lock/testing';
import { closing, context, listen } from './apps.js';

@Injectable()
class Sales {
  @Locked('sale', { waitMs: 1_000 })
  async buy(): Promise<string> {
    return 'sold';
  }
}

@Controller()
class SalesController {
  constructor(private readonly sales: Sales) {}

  @Post()
  buy(): Promise<string> {
    return this.sales.buy();
  }
}

const opened: string[] = [];

function production(): LockBackend {
  opened.push('production');
  throw new Error('no server in tests');
}

@Module({
  imports: [DistributedLockModule.forRoot(production)],
  controllers: [SalesController],
  providers: [Sales],
})
class AppModule {}

describe('testing an application', () => {
  afterEach(() => expect(opened).toEqual([]));

  it('a part of it, with LockTestingModule', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Sales],
    }).compile();
    await module.init();
    await expect(module.get(Sales).buy()).resolves.toBe('sold');
    await module.close();
  });

  it('all of it, with another backend in place of the real one, which is neither opened nor started', async () => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const module = await builder.overrideProvider(DISTRIBUTED_LOCK_OPTIONS).useValue(memory()).compile();
    const url = await listen(closing(module.createNestApplication()));
    const answer = await fetch(url, { method: 'POST' });
    expect([answer.status, await answer.text()]).toEqual([201, 'sold']);
    expect(module.get(LockService).backend.name).toBe('memory');
  });

  it('all of it, with failures on request', async () => {
    const backend = new TestLockBackend();
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const module = await builder
      .overrideProvider(DISTRIBUTED_LOCK_OPTIONS)
      .useValue({ backend, logger: false })
      .compile();
    const url = await listen(closing(module.createNestApplication()));
    const buy = async (): Promise<number> => (await fetch(url, { method: 'POST' })).status;
    backend.breakDown();
    expect([await buy(), module.get(LockService).health]).toEqual([
      503,
      { status: 'down', detail: 'the test backend is down' },
    ]);
    backend.repair();
    expect(module.get(LockService).health).toEqual({ status: 'up' });
    const free = await backend.occupy('sale');
    expect(await buy()).toBe(423);
    await free();
    expect(await buy()).toBe(201);
  });

  it('refuses LockTestingModule beside the real module, and says what to do', async () => {
    const app = context({ imports: [AppModule, LockTestingModule.forRoot()] });
    await expect(app).rejects.toThrow('A test overrides DISTRIBUTED_LOCK_OPTIONS instead');
    opened.length = 0;
  });
});

describe('LockTestingModule', () => {
  it('lets time go on, when asked to', async () => {
    const module = closing(
      await Test.createTestingModule({
        imports: [LockTestingModule.forRoot({ clock: 'real', defaults: { waitMs: 20 } })],
        providers: [Sales],
      }).compile(),
    );
    await module.get(TestLockBackend).occupy('key');
    await expect(module.get(LockService).acquire('key')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    expect(() => module.get(ManualClock)).toThrow('ManualClock');
  });

  it('has further backends by name', async () => {
    const module = closing(
      await Test.createTestingModule({ imports: [LockTestingModule.forRoot({ backends: ['ledger'] })] }).compile(),
    );
    await module.get<LockService>('LockService(ledger)').acquire('entry');
    expect(module.get<TestLockBackend>(getTestLockBackendToken('ledger')).held).toEqual(['entry']);
    expect(module.get(TestLockBackend).held).toEqual([]);
  });
});
