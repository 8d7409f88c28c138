import * as core from 'nestjs-distributed-lock/core';

describe('errors', () => {
  const classes = Object.entries(core).filter(
    ([, member]) => typeof member === 'function' && member.prototype instanceof core.LockError,
  );

  it.each(classes)('%s has its name, also from a bundler that shortens the names of classes', (name, member) => {
    const Shortened = Object.defineProperty(member as new (...args: unknown[]) => Error, 'name', { value: 'a' });
    const details = { waitMs: 1, backend: 'x', operation: 'y', ...(name === 'StaleFenceError' && { token: 1n }) };
    const error = new Shortened(...(name === 'LockDeadlockError' ? [['k'], 'k'] : ['k', details]));
    Object.defineProperty(member, 'name', { value: name });
    expect(error.name).toBe(name);
    expect(JSON.parse(JSON.stringify(error))).toMatchObject({ name, message: error.message });
  });

  it('are at least seven', () => {
    expect(classes.length).toBeGreaterThanOrEqual(7);
  });
});
