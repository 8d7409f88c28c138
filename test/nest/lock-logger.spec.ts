import type { LoggerService } from '@nestjs/common';
import {
  type BackendHealth,
  DistributedLockModule,
  getLockServiceToken,
  Locked,
  LockService,
} from 'nestjs-distributed-lock';
import { memcached } from 'nestjs-distributed-lock/memcached';
import { memory } from 'nestjs-distributed-lock/memory';
import { redis } from 'nestjs-distributed-lock/redis';
import { TestLockBackend } from 'nestjs-distributed-lock/testing';
import { eventually, freePort } from '../support/index.js';
import { context } from './apps.js';

function recording(lines: string[]): LoggerService {
  const record = (level: string) => (message: unknown) => void lines.push(`${level} ${String(message)}`);
  return { log: record('log'), warn: record('warn'), error: record('error'), debug: record('debug') };
}

/** A backend that tells of its health when the test says so. */
function reporting(): { readonly backend: TestLockBackend; readonly report: (health: BackendHealth) => void } {
  let listener: (health: BackendHealth) => void = () => undefined;
  const onChange = (added: typeof listener): (() => void) => {
    listener = added;
    return () => undefined;
  };
  const health = { current: { status: 'idle' }, onChange };
  const backend = Object.defineProperty(new TestLockBackend(), 'health', { value: health });
  return { backend, report: (given) => listener(given) };
}

describe('what the module logs', () => {
  it('is failure, recovery, jeopardy and loss, with the name of the backend', async () => {
    const lines: string[] = [];
    const [main, ledger] = [new TestLockBackend(), reporting()];
    const backends = { default: main, ledger: ledger.backend };
    const module = DistributedLockModule.forRoot({ backends, logger: recording(lines) });
    const app = await context({ imports: [module] });
    const lock = await app.get<LockService>(getLockServiceToken('ledger')).acquire('entry');
    ledger.report({ status: 'down', detail: 'connection refused' });
    ledger.report({ status: 'up' });
    await eventually(() => expect(lines).toHaveLength(4));
    ledger.backend.revoke('entry');
    expect(lines).toEqual([
      'warn ledger (test): the backend is down: connection refused',
      'warn ledger (test): "entry" may soon be lost: connection refused',
      'log ledger (test): the backend is up',
      'log ledger (test): "entry" is safe again',
      `warn ledger (test): "entry" is lost (revoked), fencing token ${lock.fencingToken}`,
    ]);
    main.breakDown();
    await expect(app.get(LockService).acquire('sale')).rejects.toMatchObject({ code: 'LOCK_BACKEND' });
    expect(lines.slice(5)).toEqual(['debug test: test could not acquire "sale": the test backend is down']);
  });

  it('is orders that can deadlock, by the templates of their keys, when asked for', async () => {
    class Shop {
      @Locked('user_:name')
      async asUser(name: string, work?: () => Promise<void>) {
        await work?.();
        return name;
      }

      @Locked('sale_:title')
      async inSale(title: string, work?: () => Promise<void>) {
        await work?.();
        return title;
      }
    }
    const lines: string[] = [];
    const options = { backend: memory(), logger: recording(lines), orderWarnings: true };
    const shop = (await context({ imports: [DistributedLockModule.forRoot(options)], providers: [Shop] })).get(Shop);
    await shop.asUser('ann', async () => void (await shop.inSale('shoes')));
    expect(lines).toEqual([]);
    await shop.inSale('hats', async () => void (await shop.asUser('bob')));
    expect(lines).toHaveLength(1);
    const [line = ''] = lines;
    expect(line).toMatch(
      /^warn memory: locks are taken in orders that can deadlock:\n"user_bob" under "sale_hats"\n +at /u,
    );
    expect(line).toMatch(/\n"sale_shoes" under "user_ann"\n +at /u);
  });

  it('is nothing, when told so', async () => {
    const module = DistributedLockModule.forRoot({ backend: new TestLockBackend(), logger: false });
    const app = await context({ imports: [module] });
    await (await app.get(LockService).acquire('sale')).release();
  });

  it.each([
    ['redis', (port: number) => redis({ url: `redis://127.0.0.1:${port}` })],
    ['memcached', (port: number) => memcached({ servers: `127.0.0.1:${port}` })],
  ])('says at the start that %s is down, and health does too', async (name, open) => {
    const lines: string[] = [];
    const backend = open(await freePort());
    const app = await context({ imports: [DistributedLockModule.forRoot({ backend, logger: recording(lines) })] });
    expect(app.get(LockService).health.status).toBe('down');
    expect(lines.filter((line) => line.startsWith('warn'))).toEqual([
      expect.stringContaining(`warn ${name}: the backend is down`),
    ]);
    expect(lines.filter((line) => line.includes('could not start'))).toHaveLength(1);
    expect(lines.join('\n')).not.toContain('""');
  });
});
