import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Locked, LockService } from '../../lib/index.js';
import { LockTestingModule, ManualClock, TestLockBackend } from 'nestjs-distributed-lock/testing';

@Injectable()
class Reports {
  @Locked('report', { waitMs: 5_000 })
  async make(): Promise<string> {
    return 'made';
  }
}

describe('LockTestingModule', () => {
  it('lets a test decide who holds a key, when time passes and whether the server answers', async () => {
    const module = await Test.createTestingModule({
      imports: [LockTestingModule.forRoot()],
      providers: [Reports],
    }).compile();
    await module.init();
    const [reports, backend, clock] = [module.get(Reports), module.get(TestLockBackend), module.get(ManualClock)];

    const free = await backend.occupy('report');
    const late = expect(reports.make()).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
    await clock.advance(5_000);
    await late;
    await free();
    await expect(reports.make()).resolves.toBe('made');
    backend.breakDown();
    await expect(reports.make()).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    backend.repair();

    const lock = await module.get(LockService).acquire('other');
    await module.close();
    expect(lock.signal.reason).toMatchObject({ reason: 'shutdown' });
  });
});
