import { jest } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  currentLock,
  DISTRIBUTED_LOCK_OPTIONS,
  DistributedLockModule,
  InjectLockService,
  Locked,
  LockKey,
  LockService,
} from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';
import { withTestLocks } from 'nestjs-distributed-lock/testing';
import { closing, providing } from './apps.js';
import { Crossing } from './crossing.js';

@Injectable()
class Sales {
  @Locked('sale_:id', { waitMs: 0 })
  async buy(@LockKey('id') id: string, work: () => unknown = () => currentLock()?.key): Promise<unknown> {
    return work() ?? id;
  }
}

@Injectable()
class OnlineSales extends Sales {}

@Injectable()
class Ledger {
  constructor(@InjectLockService('ledger') readonly locks: LockService) {}

  @Locked('entry', { backend: 'ledger' })
  async enter(): Promise<string | undefined> {
    return currentLock()?.key;
  }
}

describe('a unit test without an application', () => {
  it('gives an instance its locks, which exclude those of other instances', async () => {
    const [one, other] = [withTestLocks(new Sales()), withTestLocks(new Sales())];
    await expect(one.buy('1')).resolves.toBe('sale_1');
    const during = await one.buy('1', () => other.buy('1').catch((error: unknown) => error));
    expect(during).toMatchObject({ code: 'LOCK_TIMEOUT', message: expect.stringContaining('reentrant: true') });
    let leave = (): void => undefined;
    const inside = one.buy('1', () => new Promise((resolve) => (leave = () => resolve('left'))));
    await expect(other.buy('1')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await expect(other.buy('2')).resolves.toBe('sale_2');
    leave();
    await expect(inside).resolves.toBe('left');
  });

  it('gives them a service of its own', async () => {
    await using locks = new LockService(memory());
    await using _held = await locks.acquire('sale_1');
    await expect(withTestLocks(new Sales(), locks).buy('1')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it('is told that there is nothing to lock', () => {
    expect(() => withTestLocks({})).toThrow('Object has no method with @Locked');
  });
});

describe('doubles in tests', () => {
  it('stand for all backends by one override, and exclude', async () => {
    const production = (): never => {
      throw new Error('no server in tests');
    };
    const backends = { default: production, ledger: production };
    const builder = Test.createTestingModule({
      imports: [DistributedLockModule.forRoot({ backends })],
      providers: [Sales, Ledger],
    });
    const module = closing(await builder.overrideProvider(DISTRIBUTED_LOCK_OPTIONS).useValue(memory()).compile());
    await module.init();
    const ledger = module.get(Ledger);
    await expect(ledger.enter()).resolves.toBe('entry');
    await using _held = await ledger.locks.acquire('sale_1');
    await expect(module.get(Sales).buy('1')).resolves.toBe('sale_1');
    await using _taken = await module.get(LockService).acquire('sale_1');
    await expect(module.get(Sales).buy('1')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
  });

  it('spy on an inherited method', async () => {
    const spy = jest.spyOn(OnlineSales.prototype, 'buy');
    const app = await providing(new Crossing(), OnlineSales);
    await expect(app.get(OnlineSales).buy('1')).resolves.toBe('sale_1');
    expect(spy).toHaveBeenCalledTimes(1);
    spy.mockRestore();
    // The spy was put on the class that inherits.
    Reflect.deleteProperty(OnlineSales.prototype, 'buy');
  });

  it('of LockService that run nothing are an error, not a result', async () => {
    const mock = { withLock: jest.fn(), withLocks: jest.fn() };
    const module = await Test.createTestingModule({
      providers: [Sales, { provide: LockService, useValue: mock }],
    }).compile();
    await expect(module.get(Sales).buy('1')).rejects.toThrow('ran nothing, as mocks do');
  });

  it('are not given as a second argument of forRoot', () => {
    const untyped = DistributedLockModule as unknown as { forRoot(...given: unknown[]): unknown };
    expect(() => untyped.forRoot(memory(), { namespace: 'shop' })).toThrow('forRoot takes one argument');
  });
});
