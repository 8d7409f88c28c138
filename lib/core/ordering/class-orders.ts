import type { LockOrder } from '../events/lock-observer.js';

const MAX_CLASSES = 1_000;
/** Maximum number of known orders, because each keeps a call stack in memory. */
const MAX_ORDERS = 10_000;

const NUMERIC_COLLATOR = new Intl.Collator('en', { numeric: true });

/** Orders in which callers took keys, by the class of the held key, then by that of the wanted one. */
export class ClassOrders {
  readonly #ordersByClasses = new Map<string, Map<string, LockOrder>>();
  readonly #classes = new Set<string>();
  /** Classes of which keys were taken in opposite orders. Each is reported once. */
  readonly #suspectClasses = new Set<string>();
  #orderCount = 0;

  /** @param onFull called when there are too many classes or orders to add one */
  constructor(private readonly onFull: () => void) {}

  /**
   * Returns the circle that a new order closes, if any. Two opposite orders of keys of one class are a circle. Calls
   * `getStack` only if the order is kept or returned.
   */
  addAndFindCircle(order: Omit<LockOrder, 'stack'>, getStack: () => string): readonly LockOrder[] | undefined {
    const { heldClass, wantedClass } = order;
    const knownOrder = this.#ordersByClasses.get(heldClass)?.get(wantedClass);
    if (knownOrder) {
      if (heldClass !== wantedClass || this.#suspectClasses.has(heldClass) || haveSameDirection(knownOrder, order))
        return undefined;
      this.#suspectClasses.add(heldClass);
      return [{ ...order, stack: getStack() }, knownOrder];
    }
    if (!this.#tryReserveRoom(heldClass, wantedClass)) return undefined;
    const newOrder = { ...order, stack: getStack() };
    const pathBack = heldClass === wantedClass ? undefined : this.#findPath(wantedClass, heldClass);
    this.#ordersByClasses.set(
      heldClass,
      (this.#ordersByClasses.get(heldClass) ?? new Map()).set(wantedClass, newOrder),
    );
    return pathBack ? [newOrder, ...pathBack] : undefined;
  }

  #tryReserveRoom(...classes: readonly string[]): boolean {
    const newClasses = new Set(classes.filter((name) => !this.#classes.has(name)));
    if (this.#classes.size + newClasses.size > MAX_CLASSES || this.#orderCount === MAX_ORDERS) {
      this.onFull();
      return false;
    }
    for (const name of newClasses) this.#classes.add(name);
    this.#orderCount += 1;
    return true;
  }

  #findPath(from: string, to: string): readonly LockOrder[] | undefined {
    const paths = new Map<string, readonly LockOrder[]>([[from, []]]);
    for (const [reachedClass, path] of paths) {
      for (const [wantedClass, order] of this.#ordersByClasses.get(reachedClass) ?? []) {
        if (wantedClass === to) return [...path, order];
        if (!paths.has(wantedClass)) paths.set(wantedClass, [...path, order]);
      }
    }
    return undefined;
  }
}

/**
 * Returns whether two orders of keys of one class both ascend or both descend. It is enough if they do so by text, as
 * `withLocks` sorts keys, or by the numbers in the keys.
 */
function haveSameDirection(one: Omit<LockOrder, 'stack'>, other: Omit<LockOrder, 'stack'>): boolean {
  return (
    one.held < one.wanted === other.held < other.wanted ||
    NUMERIC_COLLATOR.compare(one.held, one.wanted) > 0 === NUMERIC_COLLATOR.compare(other.held, other.wanted) > 0
  );
}
