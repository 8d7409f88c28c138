import Sequencer from '@jest/test-sequencer';

/** Estimated seconds of specs that no run on this machine has measured yet. The first matching pattern counts. */
const ESTIMATES = [
  [/\/(etcd|zookeeper)-(faults|contract)\./, 80],
  [/\/sample\/stampede|\/faults\/|-faults\./, 60],
  [/\/(e2e|readme|simulation|package)\//, 40],
  [/-contract\./, 25],
  [/\/(silence|told-at-once|sessions|busy|queue-waiting|network|session|access|cluster-slots)\./, 25],
  [/\/(backends|examples|sample|servers)\//, 10],
];

/** Runs the longest spec first: at the end no long one is left alone. A fresh clone uses estimates. */
export default class LongestFirst extends Sequencer {
  time(test) {
    return super.time(test) ?? 1_000 * (ESTIMATES.find(([pattern]) => pattern.test(test.path))?.[1] ?? 2);
  }
}
