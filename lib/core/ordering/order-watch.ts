import { LockDeadlockError } from '../contract/errors.js';
import { keyClass } from '../contract/key.js';
import type { Observers } from '../events/observers.js';
import { currentHolds } from '../holding/call-tree.js';
import type { Holds } from '../holding/holds.js';
import { ClassOrders } from './class-orders.js';
import { TreeWaits } from './tree-waits.js';

/**
 * Looks at each caller that is about to wait for a key and holds others. A circle of call trees that wait now is an
 * error for who closes it. A circle of the orders in which keys were ever taken is an event.
 */
export class OrderWatch {
  readonly #waits = new TreeWaits();
  readonly #orders = new ClassOrders(() => this.#warnOfRoom());
  readonly #classOf: (key: string) => string;
  #hasWarned = false;

  /** @param prefix the namespace of the keys, which names of classes do not have */
  constructor(
    given: true | ((key: string) => string),
    private readonly prefix: string,
    private readonly observers: Observers,
  ) {
    this.#classOf = given === true ? keyClass : given;
  }

  /**
   * Returns what to call when the wait has ended. @param held what this process holds
   * @throws LockDeadlockError
   */
  begin(wanted: string, held: Holds): (() => void) | undefined {
    const holds = currentHolds().filter((hold) => held.get(hold.id) === hold);
    if (holds.length === 0) return undefined;
    for (const { key } of holds) this.#note(key, wanted);
    const others = this.#waits.circle(held, holds, wanted);
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
    const orders = this.#orders.note(order, stackHere);
    if (orders) this.observers.notify('orderSuspect', () => ({ key: wanted, orders }));
  }

  #warnOfRoom(): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    process.emitWarning(
      'orderWarnings: there are too many classes of keys; a function that names fewer sees the others',
    );
  }
}

/** As many frames of the library as come before those of the caller, and as many again. */
const MOST_FRAMES = 40;
const OWN_FOLDER = /(?<folder>(?:file:\/\/|\/|[A-Z]:\\)[^()\n]*)[/\\]core[/\\]ordering[/\\]order-watch\./u;

/** Without the frames of this library, which would be all that there are below a decorated method. */
function stackHere(): string {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = MOST_FRAMES;
  const { stack = '' } = new Error('wanted here');
  Error.stackTraceLimit = stackTraceLimit;
  const frames = stack.split('\n').slice(1);
  const folder = OWN_FOLDER.exec(frames[0] ?? '')?.groups?.['folder'];
  const callers = frames.filter((frame) => folder === undefined || !frame.includes(folder));
  return (callers.length > 0 ? callers : frames).join('\n');
}
