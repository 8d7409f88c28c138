import { inspect } from 'node:util';
import { describeWanted } from '../../../support/wanted-backends.js';
import { Random } from '../../../support/random.js';
import { RedlockModel, type World } from './redlock-model.js';
import * as schemes from './schemes.js';
import { search, type Verdict, wander } from './search.js';

/** `MODEL_FULL=1` for half a million states of three candidates on nodes that forget. */
const FULL = process.env.MODEL_FULL === '1';
const SEED = Number(process.env.MODEL_SEED ?? 1);

const WORLD: World = {
  scheme: schemes.PROPOSED,
  property: 'tokens',
  leasesEnd: 'any time',
  nodes: 3,
  candidates: [1, 2, 3],
  proposals: 3,
  ticks: 0,
  losses: false,
  quarantine: false,
};
const FORGETFUL = { candidates: [1, 2], ticks: 2, losses: true };
/** The first owner asks twice, and what its first attempt asked for or takes back may come at any time later. */
const ASKED_AGAIN = {
  scheme: schemes.PROPOSED_WITHOUT_CLOCK,
  property: 'exclusion',
  leasesEnd: 'late',
  candidates: [1, 1, 2, 2],
  proposals: 2,
} as const;
const BELIEFS = { scheme: schemes.NO_TOKEN, property: 'exclusion', leasesEnd: 'late', proposals: 1 } as const;

describeWanted(['redlock'], 'the model of %s', () => {
  describe('has no wrong state, all of them searched:', () => {
    it.each<[string, Partial<World>]>([
      ['tokens of three candidates grow', { scheme: schemes.PROPOSED_WITHOUT_CLOCK }],
      ['tokens of two grow on nodes that lose everything at any moment', FORGETFUL],
      [
        'tokens of three grow on nodes that lose everything at any moment',
        { ...FORGETFUL, candidates: [1, 2, 3], ...(FULL ? {} : { proposals: 2, ticks: 1 }) },
      ],
      ['no two believe while leases end late and nodes keep what they know', { ...BELIEFS, losses: false }],
      [
        'the same, with the tokens',
        { ...BELIEFS, scheme: schemes.PROPOSED_WITHOUT_CLOCK, proposals: 3, candidates: FULL ? [1, 2, 3] : [1, 2] },
      ],
      ['no two believe when one of them was refused before', ASKED_AGAIN],
      ['the same on five nodes', { ...ASKED_AGAIN, nodes: 5, candidates: [1, 1, 2] }],
      ['no two believe when nodes lose everything and wait', { ...BELIEFS, losses: true, quarantine: true }],
    ])('%s', (what, world) => {
      const verdict = search(new RedlockModel({ ...WORLD, ...world }));
      print(what, verdict);
      expect(verdict.trace?.join('\n')).toBeUndefined();
      expect(verdict.states).toBeGreaterThan(500);
    });
  });

  describe('finds what is wrong with', () => {
    it.each<[string, Partial<World>]>([
      ['the greatest of counters that each node keeps', { scheme: schemes.GREATEST_COUNTER, proposals: 1 }],
      ['no token, once a holder pauses', { ...BELIEFS, leasesEnd: 'any time' }],
      ['no token, once a node loses everything and votes at once', { ...BELIEFS, losses: true }],
      ['a take-back that frees whatever its owner has', { ...ASKED_AGAIN, scheme: schemes.TAKEN_BACK_BY_OWNER }],
      [
        'the same on five nodes',
        { ...ASKED_AGAIN, scheme: schemes.TAKEN_BACK_BY_OWNER, nodes: 5, candidates: [1, 1, 2] },
      ],
      ['votes of an earlier attempt that come late', { ...ASKED_AGAIN, scheme: schemes.LATE_VOTES }],
      ['votes for two proposals, counted together', { scheme: schemes.MIXED_ROUNDS }],
      ['nodes that do not note that they have lost everything', { ...FORGETFUL, scheme: schemes.WITHOUT_SINCE }],
    ])('%s', (what, world) => {
      const verdict = search(new RedlockModel({ ...WORLD, ...world }));
      print(what, verdict);
      expect(verdict.violation).toMatch(/token \d is given twice|believes in it too/);
      expect(verdict.trace?.length).toBeLessThan(12);
    });
  });

  describe('of five nodes, walked through at random,', () => {
    const five = { nodes: 5, candidates: [1, 2, 3, 4], proposals: 4 };
    const walks = { walks: 4_000, steps: 80 };

    it('has tokens that grow, on nodes that lose everything', () => {
      const world = { ...WORLD, ...five, ticks: 3, losses: true };
      const verdict = wander(new RedlockModel(world), { ...walks, random: drawing(SEED) });
      print(`five nodes at random, seed ${SEED}`, verdict);
      expect(verdict.trace?.join('\n')).toBeUndefined();
    });

    it.each<[string, Partial<World>]>([
      ['counters', { scheme: schemes.GREATEST_COUNTER, proposals: 1 }],
      ['votes for two proposals, counted together', { scheme: schemes.MIXED_ROUNDS }],
      [
        'nodes that do not note that they have lost everything',
        { scheme: schemes.WITHOUT_SINCE, ticks: 3, losses: true },
      ],
    ])('shows what is wrong with %s', (what, world) => {
      const model = new RedlockModel({ ...WORLD, ...five, ...world });
      const verdict = wander(model, { ...walks, random: drawing(SEED) });
      print(`${what}, on five nodes at random, seed ${SEED}`, { ...verdict, trace: [] });
      expect(verdict.violation).toMatch(/token \d is given twice|an earlier lease had/);
    });
  });
});

function print(what: string, { states, transitions, violation, trace = [] }: Verdict): void {
  const figures = `${states} states, ${transitions} transitions`;
  const steps = trace.map((step) => `\n    ${step}`).join('');
  process.stdout.write(
    `  ${what}: ${figures}: ${violation === undefined ? 'nothing wrong' : inspect(violation)}${steps}\n`,
  );
}

function drawing(seed: number): (below: number) => number {
  const random = new Random(seed);
  return (below) => random.below(below);
}
