import { execFileSync } from 'node:child_process';
import { ManualClock } from 'nestjs-distributed-lock/testing';
import { EtcdClient } from '../../../lib/backends/etcd/transport/client.js';
import { resolveEtcdOptions } from '../../../lib/backends/etcd/options.js';
import { EtcdSession } from '../../../lib/backends/etcd/session.js';
import { EtcdLockNames } from '../../../lib/backends/etcd/lock-names.js';
import {
  aborted,
  describeWanted,
  eventually,
  failureOf,
  serverToken,
  SLACK_MS,
  throughout,
} from '../../support/index.js';
import { EtcdWorld, lineOf, wholeSecondsOf, win } from './etcd-world.js';

describeWanted(['etcd'], 'the session on etcd', () => {
  const world = EtcdWorld.shared();

  it('E1: lease lost while waiting: in line again under a new one, and served', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    const [, place] = await lineOf(world, 'k', 2);
    await world.operator.revoke(place?.lease ?? 0n);
    const [, again] = await eventually(async () => {
      const places = await world.places('k');
      expect(places[1]?.lease).not.toBe(place?.lease);
      expect(places).toHaveLength(2);
      return places;
    });
    await lock.release();
    const next = await waiting;
    expect(serverToken(next.fencingToken)).toBe(await world.tokenOf(again));
    await next.release();
  });

  it('E1: place deleted while waiting: never believed to be ours, and taken again', async () => {
    const [ours, theirs] = [world.service(), world.service()];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    const [, place] = await lineOf(world, 'k', 2);
    await world.operator.remove(place?.key ?? '');
    await lock.release();
    const next = await waiting;
    const [present] = await lineOf(world, 'k', 1);
    expect(serverToken(next.fencingToken)).toBe(await world.tokenOf(present));
    expect(present?.createdAt).toBeGreaterThan(place?.createdAt ?? 0n);
    await next.release();
  });

  it('E1: one who waits for longer than the TTL keeps the place', async () => {
    const sessionTtlMs = wholeSecondsOf(2_000);
    const [ours, theirs] = [world.service({ sessionTtlMs }), world.service({ sessionTtlMs })];
    const lock = await ours.acquire('k');
    const waiting = theirs.acquire('k', { waitMs: 20_000 });
    const line = await lineOf(world, 'k', 2);
    await throughout(sessionTtlMs * 2.25, async () => expect(await world.places('k')).toEqual(line));
    await lock.release();
    expect(serverToken((await waiting).fencingToken)).toBe(await world.tokenOf(line[1]));
    await (await waiting).release();
  });

  it('E3: a session that is over by our own clock says so, and not that anything was taken away', async () => {
    const clock = new ManualClock();
    const client = new EtcdClient(resolveEtcdOptions({ endpoints: world.server.urls }));
    try {
      const session = await EtcdSession.open(client, new EtcdLockNames('lock'), 2_000, clock);
      clock.stall(2_000);
      await expect(session.confirmKey('lock/of/nobody', 1n)).rejects.toThrow('the session is over');
      session.end();
      await expect(session.confirmKey('lock/of/nobody', 1n)).resolves.toBe(false);
    } finally {
      client.close();
    }
  });

  it('a heartbeat on its way does not revive a session that was stopped: its lease ends', async () => {
    const client = new EtcdClient(resolveEtcdOptions({ endpoints: [world.proxiedUrl] }));
    try {
      const before = new Set(await world.operator.leases());
      const session = await EtcdSession.open(client, new EtcdLockNames('lock'), wholeSecondsOf(2_000));
      expect(before.has(session.lease)).toBe(false);
      world.proxy.pause('down');
      const sent = new Promise<void>((resolve) => {
        const stopListening = world.proxy.onRequest(() => {
          stopListening();
          resolve();
        });
      });
      const confirmed = session.confirmKey('lock/of/nobody', 1n);
      await sent;
      session.stop();
      world.proxy.resume();
      await expect(confirmed).resolves.toBe(false);
      await eventually(async () => expect(await world.operator.leases()).not.toContain(session.lease), {
        withinMs: 10_000,
      });
    } finally {
      client.close();
    }
  });

  it('E7: the token is the revision at which the key was created, counted from when the data began', async () => {
    const lock = await world.service().acquire('k');
    const [place] = await world.places('k');
    const [countedFrom] = await world.operator.list('lock//counted-from');
    expect(serverToken(lock.fencingToken)).toBe(BigInt(countedFrom?.value ?? 0) + (place?.createdAt ?? 0n));
    expect(Math.abs(Number(countedFrom?.value) / 1_000 - Date.now())).toBeLessThan(60_000);
    await lock.release();
  });

  it('E7: after a loss of data, or once an operator has the count begin again, tokens are higher still', async () => {
    const service = world.service();
    const before = await service.acquire('k');
    await before.release();
    await world.operator.remove('lock//counted-from');
    const [one, two] = await Promise.all([service.acquire('k'), world.service().acquire('l')]);
    expect(one.fencingToken).toBeGreaterThan(before.fencingToken);
    expect(await world.tokenOf((await world.places('l'))[0])).toBe(serverToken(two.fencingToken));
    await Promise.all([one.release(), two.release()]);
  });

  it('E7: a count that is no number is an error that says what to do, and leaves nothing', async () => {
    await world.operator.put('lock//counted-from', 'canary');
    const service = world.service({ patienceMs: 100 });
    await expect(failureOf(service.acquire('k'))).resolves.toMatchObject({
      code: 'LOCK_BACKEND',
      message: expect.stringMatching(/lock\/\/counted-from must hold a number.*etcdctl del/u),
    });
    await world.operator.remove('lock//counted-from');
    await eventually(async () => expect(await world.places('k')).toEqual([]));
    await (await service.acquire('k')).release();
  });

  it('E9: one lease for all locks of a process; when it is revoked all of them are told, and the next ones are granted', async () => {
    const sessionTtlMs = wholeSecondsOf(3_000);
    const [ours, theirs] = [world.service({ sessionTtlMs }), world.service({ sessionTtlMs })];
    const keys = Array.from({ length: 50 }, (_, i) => `many-${i}`);
    const locks = await Promise.all(keys.map((key) => ours.acquire(key)));
    const others = await theirs.acquire('other');
    const leases = new Set((await world.operator.list('lock/many-')).map(({ lease }) => lease));
    expect(leases.size).toBe(1);
    const told = Promise.all(locks.map(({ signal }) => aborted(signal)));
    const [lease = 0n] = leases;
    const revokedAt = performance.now();
    await world.operator.revoke(lease);
    expect(Math.max(...(await told)) - revokedAt).toTakeLessThan(sessionTtlMs / 3 + SLACK_MS);
    expect(locks.map(({ signal }) => String(signal.reason)).filter((reason) => !/taken away/u.test(reason))).toEqual(
      [],
    );
    const again = await Promise.all(keys.map((key) => ours.acquire(key)));
    expect(again.every(({ isHeld }) => isHeld)).toBe(true);
    expect(others.isHeld).toBe(true);
    await Promise.all([...again, others].map((lock) => lock.release()));
  });

  it('renews 1,000 locks with a few requests', async () => {
    const service = world.service({ sessionTtlMs: 9_000, patienceMs: 30_000 });
    const locks = await Promise.all(Array.from({ length: 1_000 }, (_, i) => service.acquire(`held-${i}`)));
    const before = await world.server.requests();
    const since = performance.now();
    await throughout(3_000, () => expect(locks.every(({ isHeld }) => isHeld)).toBe(true));
    const after = await world.server.requests();
    const seconds = (performance.now() - since) / 1_000;
    const [readings = 0, keepAlives = 0] = ['Txn', 'LeaseKeepAlive'].map(
      (method) => (after[method] ?? 0) - (before[method] ?? 0),
    );
    const rate = ((readings + keepAlives) / seconds).toFixed(1);
    process.stdout.write(`etcd: 1,000 locks held with a TTL of 9 s: ${rate} requests a second\n`);
    // A third of the TTL has room for four heartbeats, one reading is of 128 keys, and the first ones may come twice.
    expect(readings).toBeLessThanOrEqual((2 * (8 + 4) * Math.max(seconds, 3)) / 3);
    expect(keepAlives).toBeGreaterThan(0);
    await Promise.all(locks.map((lock) => lock.release()));
  });

  it('says who has a lock, and who waits, to an operator', async () => {
    const [ours, theirs] = [world.service({}, { label: 'api-1' }), world.service({}, { label: 'api-2' })];
    const lock = await ours.acquire('sale_42');
    const waiting = theirs.acquire('sale_42', { waitMs: 20_000 });
    await lineOf(world, 'sale_42', 2);
    const args = [
      '--endpoints',
      world.server.urls.join(','),
      'get',
      '--prefix',
      'lock/sale_42/',
      '--sort-by',
      'CREATE',
    ];
    const shown = execFileSync('etcdctl', [...args, '--print-value-only'], {
      encoding: 'utf8',
      env: { ...process.env, ETCDCTL_API: '3' },
    });
    const [holder, waiter] = shown
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(holder).toMatchObject({ label: 'api-1', pid: process.pid });
    expect(waiter).toMatchObject({ label: 'api-2', pid: process.pid });
    expect(Math.abs(Date.parse(String(holder?.['since'])) - Date.now())).toBeLessThan(60_000);
    await lock.release();
    await (await waiting).release();
  });

  it('gives a lease that nobody renews back at its end, although the session lives on', async () => {
    const sessionTtlMs = wholeSecondsOf(3_000);
    const backend = world.backend({ sessionTtlMs });
    const lease = await win(backend, 'forgotten');
    const kept = await win(backend, 'kept');
    const renewing = setInterval(() => void kept.renew().catch(() => undefined), sessionTtlMs / 5);
    try {
      const [place] = await world.places('forgotten');
      await eventually(async () => expect(await world.places('forgotten')).toEqual([]), { withinMs: 15_000 });
      expect(performance.now() - lease.times.sentAt).toBeGreaterThanOrEqual(lease.times.serverTtlMs);
      expect((await world.places('kept'))[0]?.lease).toBe(place?.lease);
    } finally {
      clearInterval(renewing);
      await kept.release();
    }
  });
});

describeWanted(['etcd'], "takes the server's word for the TTL,", () => {
  it('which is in whole seconds and may have a minimum', async () => {
    await using world = await EtcdWorld.start({ args: ['--heartbeat-interval', '200', '--election-timeout', '2000'] });
    const lease = await win(world.backend({ sessionTtlMs: 1_000 }), 'k');
    expect(lease.times.serverTtlMs).toBe(3_000);
    await lease.release();
    const longer = await win(world.backend({ sessionTtlMs: 3_001 }), 'k');
    expect(longer.times.serverTtlMs).toBe(4_000);
    await longer.release();
  });
});
