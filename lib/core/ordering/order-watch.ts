import { errorText } from '../contract/error-text.js';
import { LockDeadlockError } from '../contract/errors.js';
import { replaceNumbers } from '../contract/key.js';
import type { Observers } from '../events/observers.js';
import { currentHolds } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import { ClassOrders } from './class-orders.js';
import { TreeWaits } from './tree-waits.js';

/** Throws when waiting call trees form a circle. Reports an event when the orders of all keys taken so far form one. */
export class OrderWatch {
  readonly #waits = new TreeWaits();
  readonly #orders = new ClassOrders(() => this.#warnOfManyClasses());
  #hasWarned = false;
  #hasWarnedOfError = false;

  /** @param keyPrefix namespace of the keys, which is removed before `classOf` is called */
  constructor(
    private readonly classOf: true | ((key: string) => string),
    private readonly keyPrefix: string,
    private readonly observers: Observers,
  ) {}

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
      heldClass: this.#findClass(held),
      wantedClass: this.#findClass(wanted),
    };
    const orders = this.#orders.addAndFindCircle(order, getCallerStack);
    if (orders) this.observers.notify('orderSuspect', () => ({ key: wanted, orders }));
  }

  /** Returns the class with its numbers replaced when the application's function throws. Warns of the first error. */
  #findClass(fullKey: string): string {
    const key = fullKey.slice(this.keyPrefix.length);
    if (this.classOf === true) return replaceNumbers(key);
    try {
      return this.classOf(key);
    } catch (error) {
      if (!this.#hasWarnedOfError) process.emitWarning(`orderWarnings threw: ${errorText(error)}`);
      this.#hasWarnedOfError = true;
      return replaceNumbers(key);
    }
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
