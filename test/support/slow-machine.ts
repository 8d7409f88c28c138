/** Gives the tests of a spec that imports this as many times longer as the machine is slow now: they hang only after that. */
import { jest } from '@jest/globals';
import { timeLimitOf } from './machine.js';

jest.setTimeout(timeLimitOf(300_000));
