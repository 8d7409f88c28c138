import type { LockOrder } from '../events/lock-observer.js';

const MAX_CLASSES = 1_000;
/** Maximum number of orders. Each keeps a stack in memory. */
const MAX_ORDERS = 10_000;

const NUMERIC_COLLATOR = new Intl.Collator('en', { numeric: true });

/**
 * Orders in which callers of this process have taken keys: by the class of the held key, then by that of the wanted
 * one.
 */
export class ClassOrders {
  readonly #ordersByClasses = new Map<string, Map<string, LockOrder>>();
  readonly #classes = new Set<string>();
  readonly #suspectClasses = new Set<string>();
  #orderCount = 0;

  /** @param onFull called when there are too many classes or orders to add one */
  constructor(private readonly onFull: () => void) {}

  /**
   * Adds an order if it is new, and returns the circle that it closes, if any. @param stackOf is called for a new order
   */
  addOrder(order: Omit<LockOrder, 'stack'>, stackOf: () => string): readonly LockOrder[] | undefined {
    const { heldClass, wantedClass } = order;
    const known = this.#ordersByClasses.get(heldClass)?.get(wantedClass);
    if (known) {
      if (heldClass !== wantedClass || this.#suspectClasses.has(heldClass) || haveSameDirection(known, order))
        return undefined;
      this.#suspectClasses.add(heldClass);
      return [{ ...order, stack: stackOf() }, known];
    }
    if (!this.#tryReserveRoom(heldClass, wantedClass)) return undefined;
    const newOrder = { ...order, stack: stackOf() };
    const pathBack = heldClass === wantedClass ? undefined : this.#findPath(wantedClass, heldClass);
    this.#ordersByClasses.set(
      heldClass,
      (this.#ordersByClasses.get(heldClass) ?? new Map()).set(wantedClass, newOrder),
    );
    return pathBack ? [newOrder, ...pathBack] : undefined;
  }

  #tryReserveRoom(...classes: readonly string[]): boolean {
    const added = new Set(classes.filter((name) => !this.#classes.has(name)));
    if (this.#classes.size + added.size > MAX_CLASSES || this.#orderCount === MAX_ORDERS) {
      this.onFull();
      return false;
    }
    for (const name of added) this.#classes.add(name);
    this.#orderCount += 1;
    return true;
  }

  /** Returns a shortest path of orders from one class to another. */
  #findPath(from: string, to: string): readonly LockOrder[] | undefined {
    const paths = new Map<string, readonly LockOrder[]>([[from, []]]);
    for (const [reached, path] of paths) {
      for (const [wantedClass, order] of this.#ordersByClasses.get(reached) ?? []) {
        if (wantedClass === to) return [...path, order];
        if (!paths.has(wantedClass)) paths.set(wantedClass, [...path, order]);
      }
    }
    return undefined;
  }
}

/**
 * Returns whether both orders of keys of one class ascend, or both descend, by text, as in `withLocks`, or by numbers.
 */
function haveSameDirection(one: Omit<LockOrder, 'stack'>, other: Omit<LockOrder, 'stack'>): boolean {
  return (
    one.held < one.wanted === other.held < other.wanted ||
    NUMERIC_COLLATOR.compare(one.held, one.wanted) > 0 === NUMERIC_COLLATOR.compare(other.held, other.wanted) > 0
  );
}
