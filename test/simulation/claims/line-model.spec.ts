import * as core from 'nestjs-distributed-lock/core';
import { exploreLine } from './explore.js';
import { KEYS } from './kinds.js';

describe('a line in a value, in every order of what its clients do', () => {
  it.each(KEYS)(
    'keeps the limits, lets nobody who fits sleep, and changes nothing of others: $name',
    ({ kinds, bounds, atLeast }) => {
      const { states, wrong } = exploreLine(core, kinds, bounds);
      expect(wrong).toBeUndefined();
      expect(states).toBeGreaterThan(atLeast);
    },
  );
});
