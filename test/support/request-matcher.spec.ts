import { RequestMatcher } from './request-matcher.js';

describe('RequestMatcher', () => {
  const verdicts = (pattern: string | RegExp, ...chunks: string[]) => {
    const matcher = new RequestMatcher(pattern);
    return chunks.map((chunk) => matcher.matches(Buffer.from(chunk)));
  };

  it('finds text and expressions', () => {
    expect(verdicts('SET', 'GET a', 'x SET a')).toEqual([false, true]);
    expect(verdicts(/s.t/i, 'GET a', 'x SET a')).toEqual([false, true]);
  });

  it('takes text literally, and in the bytes that it has on the wire', () => {
    expect(verdicts('a.*[b]', 'a..b', 'a.*[b]')).toEqual([false, true]);
    expect(verdicts('schl\u00fcssel', 'schlussel', 'schl\u00fcssel')).toEqual([false, true]);
  });

  it('finds what arrives in pieces', () => {
    expect(verdicts('EVALSHA', '*3 EVA', 'LS', 'HA 1')).toEqual([false, false, true]);
  });

  it('finds a pattern anew in each chunk, whatever the flags of the expression', () => {
    expect(verdicts(/a/g, 'a', 'xa')).toEqual([true, true]);
    expect(verdicts(/a/y, 'xa')).toEqual([true]);
  });
});
