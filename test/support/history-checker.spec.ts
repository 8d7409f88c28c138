import fc from 'fast-check';

import { isLinearizable } from './brute-force.js';
import { grantsByKey } from './grants.js';
import {
  checkExclusion,
  checkFencedExclusion,
  checkResourceOrder,
  checkTokenOrder,
  type LossWindow,
  type ResourceWrite,
} from './history-checker.js';
import type { Operation } from './history.js';

/** `CHECKER_RUNS=20000` for the whole of it. */
const RUNS = Number(process.env.CHECKER_RUNS ?? 1_000);

interface Case {
  readonly history: readonly Operation[];
  readonly losses: readonly LossWindow[];
}

function operation(owner: string, op: Operation['op'], inv: number, ok?: number, token?: number): Operation {
  return {
    proc: 'p',
    key: 'k',
    op,
    owner,
    inv: BigInt(inv),
    ...(ok !== undefined && { ok: BigInt(ok) }),
    ...(token !== undefined && { token: BigInt(token) }),
  };
}

/** Up to four acquisitions of one key within a few instants, so that most of them collide or touch. */
const smallCases = casesOf(['']);
/** The same, with as many kinds of claims. */
const casesOfClaims = casesOf(['', '~s', '~s', '~1-2', '~1-3', '~2-3']);

function casesOf(claims: readonly string[]): fc.Arbitrary<Case> {
  return fc
    .array(
      fc.record({
        inv: fc.nat(10),
        acquireTook: fc.nat(4),
        heldFor: fc.nat(6),
        releaseTook: fc.option(fc.nat(3)),
        token: fc.nat(6),
        claim: fc.constantFrom(...claims),
        fate: fc.constantFrom('released', 'released', 'released', 'killed', 'unknown'),
        loss: fc.option(fc.record({ after: fc.nat(4), span: fc.option(fc.nat(3)), anyOwner: fc.boolean() })),
      }),
      { minLength: 1, maxLength: 4 },
    )
    .map((acquisitions) => {
      const history: Operation[] = [];
      const losses: LossWindow[] = [];
      for (const [
        index,
        { inv, acquireTook, heldFor, releaseTook, token, claim, fate, loss },
      ] of acquisitions.entries()) {
        const owner = `o${index}${claim}`;
        const ok = inv + acquireTook;
        history.push(operation(owner, 'acquire', inv, fate === 'unknown' ? undefined : ok, token));
        const releaseInv = ok + heldFor;
        const releaseOk = releaseTook === null ? undefined : releaseInv + releaseTook;
        if (fate === 'released') history.push(operation(owner, 'release', releaseInv, releaseOk));
        if (loss === null) continue;
        const from = BigInt(inv + loss.after);
        const to = loss.span === null ? {} : { to: from + BigInt(loss.span) };
        losses.push({ from, ...to, ...(!loss.anyOwner && { owner }) });
      }
      return { history, losses };
    });
}

/** Runs the property and returns how many cases were legal, so that a test can see that both verdicts were met. */
function compareVerdicts(
  checker: (one: Case) => boolean,
  truth: (one: Case) => boolean,
  cases: fc.Arbitrary<Case> = smallCases,
): number {
  let legal = 0;
  const property = fc.property(cases, (one) => {
    const verdict = truth(one);
    if (verdict) legal += 1;
    expect(checker(one)).toBe(verdict);
  });
  fc.assert(property, { numRuns: RUNS });
  return legal / RUNS;
}

describe('checkExclusion', () => {
  const killed = (history: readonly Operation[]): LossWindow[] =>
    history
      .filter(({ op, owner }) => op === 'acquire' && !history.some((o) => o.op === 'release' && o.owner === owner))
      .map(({ owner, ok }) => ({ owner, from: ok ?? 0n }));

  it.each([
    ['of all of a key', smallCases],
    ['of all kinds of claims', casesOfClaims],
  ])('agrees with a search through all orders, %s', (_, cases) => {
    const legal = compareVerdicts(
      ({ history }) => checkExclusion(history) === null,
      ({ history }) => isLinearizable(history, false, killed(history)),
      cases,
    );
    expect(legal).toBeGreaterThan(0.2);
    expect(legal).toBeLessThan(0.95);
  });

  it('finds a third one in a large history of two permits', () => {
    const history = sequentialHistory(50_000).map((one) => ({ ...one, owner: `${one.owner}~1-2` }));
    const other = [operation('other~1-2', 'acquire', 0, 1), operation('other~1-2', 'held', 1_000_000)];
    expect(checkExclusion([...history, ...other])).toBeNull();
    const third = operation('third~1-2', 'acquire', 250_003, 250_004);
    expect(checkExclusion([...history, ...other, third])).toMatchObject({ second: { acquire: third } });
  });

  it('finds one planted overlap in a large history', () => {
    const history = sequentialHistory(50_000);
    expect(checkExclusion(history)).toBeNull();
    const intruder = operation('intruder', 'acquire', 250_003, 250_004);
    expect(checkExclusion([...history, intruder])).toMatchObject({ rule: 'exclusion', second: { acquire: intruder } });
  });

  it('finds an overlap with a grant that is not its neighbour', () => {
    const long = [operation('a', 'acquire', 0, 1), operation('a', 'release', 100, 101)];
    const short = [operation('b', 'acquire', 0, 1), operation('b', 'release', 1, 2)];
    const late = operation('c', 'acquire', 90, 99);
    expect(checkExclusion([...long, ...short, late])).toMatchObject({ first: { acquire: long[0] } });
  });

  it('counts beliefs, where they are marked, instead of the release', () => {
    const stale = [operation('a', 'acquire', 0, 1), operation('a', 'held', 5), operation('a', 'release', 50, 51)];
    const next = (at: number) => [operation('b', 'acquire', at, at), operation('b', 'release', at + 1, at + 1)];
    expect(checkExclusion([...stale, ...next(5)])).toBeNull();
    expect(checkExclusion([...stale, ...next(4)])).not.toBeNull();
    const lost = [operation('a', 'acquire', 0, 1), operation('a', 'lost', 6), operation('a', 'release', 50, 51)];
    expect(checkExclusion([...lost, ...next(5)])).toBeNull();
  });

  it('keeps keys apart, and names both records in its message', () => {
    const mine = operation('a', 'acquire', 0, 1);
    const other = { ...operation('b', 'acquire', 0, 1), key: 'elsewhere' };
    const held = operation('a', 'held', 9);
    expect(checkExclusion([mine, held, other])).toBeNull();
    const message = checkExclusion([mine, held, { ...other, key: 'k', ok: 3n }])?.message;
    expect(message).toMatch(/^exclusion of "k" violated by\n.*"owner":"a".*\n.*"owner":"b"/);
  });
});

describe('checkFencedExclusion', () => {
  it('agrees with a search through all orders, with loss windows', () => {
    const legal = compareVerdicts(
      ({ history, losses }) => checkFencedExclusion(history, losses) === null,
      ({ history, losses }) => isLinearizable(history, true, losses),
    );
    expect(legal).toBeGreaterThan(0.2);
    expect(legal).toBeLessThan(0.8);
  });

  it('finds one token out of order in a large history', () => {
    const history = sequentialHistory(50_000);
    expect(checkFencedExclusion(history)).toBeNull();
    const forged = history.map((one) => (one.owner === 'o25000' && one.op === 'acquire' ? { ...one, token: 7n } : one));
    expect(checkFencedExclusion(forged)).toMatchObject({ rule: 'fenced exclusion' });
  });

  it('takes a loss only for the key it is given for', () => {
    const killed = operation('a', 'acquire', 0, 1, 1);
    const next = operation('b', 'acquire', 5, 6, 2);
    expect(checkFencedExclusion([killed, next])).not.toBeNull();
    expect(checkFencedExclusion([killed, next], [{ key: 'k', owner: 'a', from: 4n }])).toBeNull();
    expect(checkFencedExclusion([killed, next], [{ key: 'elsewhere', from: 4n }])).not.toBeNull();
  });

  it('takes a release that failed for none', () => {
    const [first, second] = [operation('a', 'acquire', 0, 1, 1), operation('b', 'acquire', 5, 6, 2)];
    const release = operation('a', 'release', 2);
    expect(checkFencedExclusion([first, release, second])).toBeNull();
    expect(checkFencedExclusion([first, { ...release, fail: 3n }, second])).not.toBeNull();
  });

  it('refuses to judge a grant without a token', () => {
    const grants = [operation('a', 'acquire', 0, 1), operation('b', 'acquire', 3, 4)];
    expect(() => checkFencedExclusion(grants)).toThrow('A grant without a token');
  });
});

describe('checkTokenOrder', () => {
  it.each([
    ['of all of a key', smallCases],
    ['of all kinds of claims', casesOfClaims],
  ])('agrees with comparing all pairs, %s', (_, cases) => {
    const compared = compareVerdicts(
      ({ history }) => checkTokenOrder(history) === null,
      ({ history }) => {
        const grants = grantsByKey(history).get('k') ?? [];
        return !grants.some((a) =>
          grants.some(
            (b) =>
              a.acquire.ok < b.acquire.inv &&
              (a.acquire.token ?? 0n) >= (b.acquire.token ?? 0n) &&
              !(a.acquire.owner.includes('~') && b.acquire.owner.includes('~')),
          ),
        );
      },
      cases,
    );
    expect(compared).toBeGreaterThan(0.2);
    expect(compared).toBeLessThan(0.95);
  });

  it('finds a repeated token in a large history', () => {
    const history = sequentialHistory(50_000);
    expect(checkTokenOrder(history)).toBeNull();
    const repeated = operation('again', 'acquire', 1_000_000, 1_000_001, 49_999);
    expect(checkTokenOrder([...history, repeated])).toMatchObject({ second: { acquire: { owner: 'again' } } });
  });
});

describe('checkResourceOrder', () => {
  const write = (token: number, accepted: boolean, owner = `o${token}`): ResourceWrite => {
    return { key: 'k', token: BigInt(token), owner, proc: 'p', accepted };
  };

  it('passes a resource that fences', () => {
    expect(
      checkResourceOrder([write(1, true), write(1, true), write(3, true), write(2, false), write(3, true)]),
    ).toBeNull();
  });

  it('finds a stale write that was accepted', () => {
    const stale = write(1, true);
    expect(checkResourceOrder([write(2, true), stale])).toMatchObject({ rule: 'resource order', second: stale });
  });

  it('does not forget the newest over a refused write', () => {
    const stale = write(2, true);
    const found = checkResourceOrder([write(3, true), write(2, false), stale]);
    expect(found).toMatchObject({ first: write(3, true), second: stale });
  });

  it('finds a fresh write that was refused', () => {
    expect(checkResourceOrder([write(1, true), write(2, false)])).toMatchObject({ rule: 'resource order' });
  });

  it('finds a token with two owners, even if refused', () => {
    const found = checkResourceOrder([write(1, true), write(2, true), write(1, false, 'thief')]);
    expect(found).toMatchObject({ rule: 'token uniqueness', second: { owner: 'thief' } });
  });

  it('has who has a key alone raise the fence, and a share only meet it', () => {
    const shares = [write(1, true, 'a~s'), write(1, true, 'b~s'), write(3, true, 'c~1-2'), write(2, true, 'd~2-2')];
    expect(checkResourceOrder([...shares, write(4, true), write(3, false, 'c~1-2')])).toBeNull();
    expect(checkResourceOrder([write(4, true), write(3, true, 'c~s')])).toMatchObject({ rule: 'resource order' });
    expect(checkResourceOrder([write(1, true, 'a~s'), write(1, true)])).toMatchObject({ rule: 'token uniqueness' });
  });

  it('keeps keys apart', () => {
    expect(checkResourceOrder([write(2, true), { ...write(1, true), key: 'elsewhere' }])).toBeNull();
  });
});

/** One grant after the other, ten instants each, with tokens from 0. */
function sequentialHistory(grants: number): Operation[] {
  return Array.from({ length: grants }, (_, index) => {
    const at = index * 10;
    return [operation(`o${index}`, 'acquire', at, at + 1, index), operation(`o${index}`, 'release', at + 8, at + 9)];
  }).flat();
}
