import { type Claim, parseClaim, fits, isExclusive } from 'nestjs-distributed-lock/core';

describe('a claim', () => {
  it('is read from the name of its owner, and is all of the key where that says nothing we know', () => {
    const all = 2 ** 31 - 1;
    expect(parseClaim('a~s')).toEqual({ permits: 1, limit: all });
    expect(parseClaim('a~2-10')).toEqual({ permits: 2, limit: 10 });
    for (const owner of ['a', 'a~', 'a~x', 'a~0-3', 'a~2', 'a~1-999999', '~sa', 'a~s ', 'a~01-3']) {
      expect([owner, parseClaim(owner), isExclusive(owner)]).toEqual([owner, { permits: all, limit: all }, true]);
    }
  });

  it('fits while all before it and it are no more than its limit', () => {
    const [one, two, shared, all] = ['a~1-3', 'a~2-3', 'a~s', 'a'].map(parseClaim);
    const cases: [Claim | undefined, (Claim | undefined)[], boolean][] = [
      [two, [one], true],
      [two, [two], false],
      [one, [one, one, one], false],
      [shared, Array.from({ length: 1_000 }, () => shared), true],
      [shared, [all], false],
      [all, [shared], false],
      [all, [one], false],
      [all, [], true],
    ];
    for (const [claim, before, expected] of cases) {
      expect(
        claim &&
          fits(
            claim,
            before.filter((other) => other !== undefined),
          ),
      ).toBe(expected);
    }
  });
});
