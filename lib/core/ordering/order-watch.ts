import { LockDeadlockError } from '../contract/errors.js';
import { keyClass } from '../contract/key.js';
import type { Observers } from '../events/observers.js';
import { currentHolds } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import { ClassOrders } from './class-orders.js';
import { TreeWaits } from './tree-waits.js';

/**
 * Looks for deadlocks whenever a caller that holds keys is about to wait for another one. A circle of call trees that wait
 * now is an error for the caller that closes it. A circle of orders in which keys were ever taken is an event.
 */
export class OrderWatch {
  readonly #waits = new TreeWaits();
  readonly #orders = new ClassOrders(() => this.#warnOfManyClasses());
  readonly #classOf: (key: string) => string;
  #hasWarned = false;

  /** @param prefix namespace of the keys, which names of classes leave out */
  constructor(
    classOf: true | ((key: string) => string),
    private readonly prefix: string,
    private readonly observers: Observers,
  ) {
    this.#classOf = classOf === true ? keyClass : classOf;
  }

  /**
   * Notes the beginning of a wait, and returns a function to call at its end. @param held holds of this process
   * @throws LockDeadlockError
   */
  begin(wanted: string, held: Holds): (() => void) | undefined {
    const holds = currentHolds().filter((hold) => held.getById(hold.id) === hold);
    if (holds.length === 0) return undefined;
    for (const { key } of holds) this.#note(key, wanted);
    const others = this.#waits.findCircle(held, holds, wanted);
    if (!others) return this.#waits.add(holds, wanted);
    const keys = holds.map(({ key }) => key);
    throw new LockDeadlockError(keys, wanted, others);
  }

  #note(held: string, wanted: string): void {
    const order = {
      held,
      wanted,
      heldClass: this.#classOf(held.slice(this.prefix.length)),
      wantedClass: this.#classOf(wanted.slice(this.prefix.length)),
    };
    const orders = this.#orders.note(order, getCallerStack);
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

/** Maximum number of stack frames: twice as many as this library has before those of the caller. */
const MAX_FRAMES = 40;
const OWN_FOLDER_PATTERN = /(?<folder>(?:file:\/\/|\/|[A-Z]:\\)[^()\n]*)[/\\]core[/\\]ordering[/\\]order-watch\./u;

/** Returns the caller's stack without the frames of this library. */
function getCallerStack(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = MAX_FRAMES;
  const { stack = '' } = new Error('wanted here');
  Error.stackTraceLimit = stackTraceLimit;
  const frames = stack.split('\n').slice(1);
  const folder = OWN_FOLDER_PATTERN.exec(frames[0] ?? '')?.groups?.['folder'];
  const callers = frames.filter((frame) => folder === undefined || !frame.includes(folder));
  return (callers.length > 0 ? callers : frames).join('\n');
}
