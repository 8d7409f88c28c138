import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { wantedOf } from '../backends/describe-backend.js';
import { eventually } from '../support/eventually.js';
import { CHOICES, outcomeOf, Stampedes } from './stampedes.js';

const PATIENCE = { withinMs: 30_000, everyMs: 50 };
const ENDLESS = ['--processes', '2', '--buyers', '100000', '--stock', '100000'];

describe('npm run stampede', () => {
  let stampedes: Stampedes;

  beforeAll(async () => {
    stampedes = await Stampedes.prepare();
  });

  afterAll(async () => stampedes[Symbol.asyncDispose]());

  it('ends what it started when it is interrupted', async () => {
    const stampede = stampedes.start(ENDLESS);
    const outcome = outcomeOf(stampede);
    await untilItSells();
    stampede.kill('SIGINT');
    const { code, stderr } = await outcome;
    expect([code, stderr]).toEqual([1, expect.stringContaining('ended by SIGINT')]);
    await expect(stampedes.processes()).resolves.toEqual([]);
    await expect(stampedes.files()).resolves.toEqual([]);
  }, 60_000);

  for (const backend of wantedOf(CHOICES)) {
    it(`leaves nothing behind when it is killed itself, on ${backend}`, async () => {
      const stampede = stampedes.start([...ENDLESS, '--backend', backend]);
      await untilItSells();
      stampede.kill('SIGKILL');
      await eventually(async () => {
        expect(await stampedes.processes()).toEqual([]);
        expect(await stampedes.files()).toEqual([]);
      }, PATIENCE);
    }, 60_000);
  }

  /** All has been started then: the keepers of its directory and its server, the server, and the application. */
  async function untilItSells(): Promise<void> {
    const application = (command: string): boolean => command.includes('/shop-process/main.js ');
    await eventually(async () => (await stampedes.processes()).filter(application).length === 2, PATIENCE);
  }
});
