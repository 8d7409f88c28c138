import { failureKindOf, LockConfigurationError, withFailureKind } from 'nestjs-distributed-lock/core';

describe('the kind of a failure', () => {
  it('is that of the first cause that has one', () => {
    const silent = withFailureKind(new Error('no answer'), 'silent');
    const wrapped = new Error('outer', { cause: new Error('inner', { cause: silent }) });
    expect(failureKindOf(wrapped)).toBe('silent');
    expect(failureKindOf(new Error('outer', { cause: new LockConfigurationError('wrong', 'url') }))).toBe('value');
    expect(failureKindOf(new Error('nothing is known'))).toBe('refuses');
    expect(failureKindOf('no object')).toBe('refuses');
  });

  it('is found for an error that is its own cause, too', () => {
    const error = new Error('a circle');
    error.cause = error;
    expect(failureKindOf(error)).toBe('refuses');
  });
});
