import Sequencer from '@jest/test-sequencer';

/** Seconds that specs take which no run of this machine has measured yet; the first pattern counts. */
const GUESSES = [
  [/\/sample\/stampede|\/faults\/|-faults\./, 60],
  [/\/(e2e|readme|simulation)\//, 40],
  [/-contract\./, 25],
  [/\/(backends|sample|package|servers)\//, 10],
];

/** The longest spec first, so that none is left alone at the end; a fresh clone has to guess. */
export default class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? 1_000 * (GUESSES.find(([pattern]) => pattern.test(test.path))?.[1] ?? 2);
  }
}
