import { randomInt } from 'node:crypto';

const STEPS = 2 ** 32;

/** From 0 to below 1, unpredictable. */
export function systemRandom(): number {
  return randomInt(STEPS) / STEPS;
}
