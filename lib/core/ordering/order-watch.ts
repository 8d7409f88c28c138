import { LockDeadlockError } from '../contract/errors.js';
import { replaceNumbers } from '../contract/key.js';
import type { Observers } from '../events/observers.js';
import { currentHolds } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import { withFallback } from '../kit/with-fallback.js';
import { ClassOrders } from './class-orders.js';
import { TreeWaits } from './tree-waits.js';

/** Throws when waiting call trees form a circle. Reports an event when the orders of all keys taken so far form one. */
export class OrderWatch {
  readonly #waits = new TreeWaits();
  readonly #orders = new ClassOrders(() => this.#warnOfManyClasses());
  readonly #classOf: (key: string) => string;
  #hasWarned = false;

  /** @param keyPrefix namespace of the keys, which is removed before `classOf` is called */
  constructor(
    classOf: true | ((key: string) => string),
    private readonly keyPrefix: string,
    private readonly observers: Observers,
  ) {
    this.#classOf = classOf === true ? replaceNumbers : withFallback('orderWarnings threw', classOf, replaceNumbers);
  }

  /**
   * Returns a function to call at the end of the wait, or `undefined` for a caller that holds no key.
   * @throws LockDeadlockError
   */
  beginWait(wantedKey: string, serviceHolds: Holds): (() => void) | undefined {
    const treeHolds = currentHolds().filter((hold) => serviceHolds.getById(hold.id) === hold);
    if (treeHolds.length === 0) return undefined;
    for (const { key } of treeHolds) this.#addOrderAndReportCircle(key, wantedKey);
    const otherWaits = this.#waits.findCircle(serviceHolds, treeHolds, wantedKey);
    if (!otherWaits) return this.#waits.add(treeHolds, wantedKey);
    const heldKeys = treeHolds.map(({ key }) => key);
    throw new LockDeadlockError(heldKeys, wantedKey, otherWaits);
  }

  #addOrderAndReportCircle(held: string, wanted: string): void {
    const order = {
      held,
      wanted,
      heldClass: this.#classOf(held.slice(this.keyPrefix.length)),
      wantedClass: this.#classOf(wanted.slice(this.keyPrefix.length)),
    };
    const orders = this.#orders.addAndFindCircle(order, getCallerStack);
    if (orders) this.observers.notify('orderSuspect', () => ({ key: wanted, orders }));
  }

  #warnOfManyClasses(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      'orderWarnings: there are too many classes of keys; a function that names fewer sees the others',
    );
  }
}

/** Maximum number of frames of a recorded stack. About half of the frames are this library's, and are removed. */
const MAX_FRAMES = 40;
const OWN_FOLDER_PATTERN = /(?<folder>(?:file:\/\/|\/|[A-Z]:\\)[^()\n]*)[/\\]core[/\\]ordering[/\\]order-watch\./u;

function getCallerStack(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = MAX_FRAMES;
  const { stack = '' } = new Error('wanted here');
  Error.stackTraceLimit = stackTraceLimit;
  const frames = stack.split('\n').slice(1);
  const folder = OWN_FOLDER_PATTERN.exec(frames[0] ?? '')?.groups?.['folder'];
  const callerFrames = frames.filter((frame) => folder === undefined || !frame.includes(folder));
  return (callerFrames.length > 0 ? callerFrames : frames).join('\n');
}
