import { eventually, wantedOf } from '../support/index.js';
import { CHOICES, outcomeOf, Stampedes } from './stampedes.js';
import '../support/slow-machine.js';

const PATIENCE = { withinMs: 30_000, everyMs: 50 };
const endless = (processes: number) => ['--processes', `${processes}`, '--buyers', '100000', '--stock', '100000'];

describe('npm run stampede', () => {
  let stampedes: Stampedes;

  beforeAll(async () => {
    stampedes = await Stampedes.prepare();
  });

  afterAll(async () => stampedes[Symbol.asyncDispose]());

  it('ends what it started when it is interrupted', async () => {
    const stampede = stampedes.start(endless(2));
    const outcome = outcomeOf(stampede);
    await untilStarted(2);
    stampede.kill('SIGINT');
    const { code, stderr } = await outcome;
    expect([code, stderr]).toEqual([1, expect.stringContaining('ended by SIGINT')]);
    await expect(stampedes.processes()).resolves.toEqual([]);
    await expect(stampedes.files()).resolves.toEqual([]);
  });

  for (const backend of wantedOf(CHOICES)) {
    it(`leaves nothing behind when it is killed itself, on ${backend}`, async () => {
      const stampede = stampedes.start([...endless(1), '--backend', backend]);
      await untilStarted(1);
      stampede.kill('SIGKILL');
      await eventually(async () => {
        expect(await stampedes.processes()).toEqual([]);
        expect(await stampedes.files()).toEqual([]);
      }, PATIENCE);
    });
  }

  /** Waits for the shops, which start after the keepers of the directory and the server, and after the server. */
  async function untilStarted(shops: number): Promise<void> {
    const isShop = (command: string): boolean => command.includes('/shop-process/main.js ');
    await eventually(async () => (await stampedes.processes()).filter(isShop).length === shops, PATIENCE);
  }
});
