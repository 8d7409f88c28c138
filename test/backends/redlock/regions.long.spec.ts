import { randomInt } from 'node:crypto';
import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import type { LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { describeWanted, eventually, throughout } from '../../support/index.js';
import { RedlockWorld } from './redlock-world.js';
import { Regions } from './regions.js';

/** `REDLOCK_GRANTS=2000` for the whole of it. */
const GRANTS = Number(process.env.REDLOCK_GRANTS ?? 300);
/** How far it is from one region to the other, each way. */
const APART_MS = 50;
const CLIENTS = 8;
/** All clients contend for each of them, independently of the others. */
const KEYS = 20;
const LONG_MS = 8 * APART_MS;
const SHORT_MS = 2;
const FAR_MS = 250;
const [NEAR, OTHER, FAR] = [0, 1, 2] as const;

describeWanted(['redlock'], '%s, with nodes that are not equally far from all', () => {
  const world = RedlockWorld.shared(3);

  it.each([
    { ways: 'both ways', up: FAR_MS, down: FAR_MS },
    { ways: 'on the way there', up: FAR_MS, down: 0 },
    { ways: 'on the way back', up: 0, down: FAR_MS },
  ])(`one that is refused first, and wins then, keeps the votes of a node ${FAR_MS} ms away $ways`, async (delays) => {
    await using regions = new Regions(world);
    const { lock, other } = await refusedAndThenWon(regions, delays);
    await throughout(4 * FAR_MS, () => nobodyElse(lock, other));
    await lock.release();
    await other.withLock('key', () => undefined);
  });

  it('nor does a vote of the refused attempt take them away that arrives last, or is taken back last', async () => {
    await using regions = new Regions(world);
    const { lock, other, votes } = await refusedAndThenWon(regions, { up: FAR_MS, down: FAR_MS });
    await Promise.all([
      throughout(4 * FAR_MS, () => nobodyElse(lock, other)),
      ...votes.map((vote) => replay(world.servers[FAR]?.port ?? 0, vote)),
    ]);
    await lock.release();
  });

  /** Refused by two nodes, while its vote is on the way to the third, and then elected by that one and the first. */
  async function refusedAndThenWon(regions: Regions, { up, down }: { readonly up: number; readonly down: number }) {
    const [{ service, proxies }, { service: other }] = [await regions.serviceAt([]), await regions.serviceAt([])];
    proxies[FAR]?.delay(up, 'up');
    proxies[FAR]?.delay(down, 'down');
    await world.occupy('key', 'somebody', [NEAR, OTHER]);
    const votes: Buffer[] = [];
    proxies[FAR]?.onRequest((chunk) => votes.push(chunk));
    const waiting = service.acquire('key', { ttlMs: 60_000, waitMs: 20_000 });
    await eventually(() => expect(votes.length).toBeGreaterThan(1));
    await world.free('key', [NEAR]);
    const lock = await waiting;
    await world.free('key', [OTHER]);
    return { lock, other, votes };
  }

  async function nobodyElse(lock: LockHandle, other: LockService): Promise<void> {
    const second = await other.tryAcquire('key');
    expect({ first: lock.isHeld, second: second?.isHeld ?? false }).toEqual({ first: true, second: false });
  }

  it.each([
    { here: 2, there: 1 },
    { here: 3, there: 2 },
  ])(
    `of two believers there is none in ${GRANTS} grants, with $here nodes here and $there nodes ${APART_MS} ms away`,
    async ({ here, there }) => {
      await using wide = await RedlockWorld.start(here + there);
      await using regions = new Regions(wide);
      const delays = (first: number, second: number) => wide.servers.map((_, place) => (place < here ? first : second));
      const services = [];
      for (let i = 0; i < CLIENTS; i += 1) {
        const { service } = await regions.serviceAt(i % 2 === 0 ? delays(0, APART_MS) : delays(APART_MS, 0));
        services.push(service);
      }
      const { grants, overlaps, lost } = await hammer(services);
      process.stdout.write(
        `  ${here} + ${there} nodes, ${CLIENTS} clients: ${overlaps} overlaps, ${lost} lost, in ${grants} grants\n`,
      );
      expect({ overlaps, lost }).toEqual({ overlaps: 0, lost: 0 });
    },
    GRANTS * 500 + 300_000,
  );
});

/** Each client takes each key again and again: mostly for a moment, so that many contend, or long enough to be overtaken. */
async function hammer(services: readonly LockService[]): Promise<{ grants: number; overlaps: number; lost: number }> {
  let [grants, overlaps, lost] = [0, 0, 0];
  const contend = async (service: LockService, key: string, holders: Set<LockHandle>): Promise<void> => {
    while (grants < GRANTS) {
      const lock = await service.acquire(key, { ttlMs: 60_000, waitMs: 120_000 });
      grants += 1;
      overlaps += [...holders].filter(({ isHeld }) => isHeld).length;
      holders.add(lock);
      await pause(randomInt(4) === 0 ? LONG_MS : SHORT_MS);
      if (!lock.isHeld) lost += 1;
      holders.delete(lock);
      await lock.release();
    }
  };
  const keys = Array.from({ length: KEYS }, (_, place) => ({ key: `key-${place}`, holders: new Set<LockHandle>() }));
  await Promise.all(services.flatMap((service) => keys.map(({ key, holders }) => contend(service, key, holders))));
  return { grants, overlaps, lost };
}

/** Sends it as if it had been on its way until now. */
function replay(port: number, request: Buffer): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = createConnection({ port, host: '127.0.0.1' });
    socket.on('error', reject);
    socket.once('data', () => socket.end(resolve));
    socket.write(request);
  });
}
