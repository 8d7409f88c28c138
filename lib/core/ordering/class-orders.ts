import type { LockOrder } from '../events/lock-observer.js';

const MAX_CLASSES = 1_000;
/** Maximum number of orders, each of which keeps a stack. */
const MAX_ORDERS = 10_000;

const NUMERIC_COLLATOR = new Intl.Collator('en', { numeric: true });

/** Orders in which this process has taken keys, by their classes: for each class the classes held when it was wanted. */
export class ClassOrders {
  readonly #wantedUnder = new Map<string, Map<string, LockOrder>>();
  readonly #classes = new Set<string>();
  readonly #suspects = new Set<string>();
  #count = 0;

  /** @param onFull called when there are too many classes to note another one */
  constructor(private readonly onFull: () => void) {}

  /** Notes an order that is new, and returns the circle that it closes. @param stackOf is called for a new order */
  note(order: Omit<LockOrder, 'stack'>, stackOf: () => string): readonly LockOrder[] | undefined {
    const { heldClass, wantedClass } = order;
    const first = this.#wantedUnder.get(heldClass)?.get(wantedClass);
    if (first) {
      if (heldClass !== wantedClass || this.#suspects.has(heldClass) || agree(first, order)) return undefined;
      this.#suspects.add(heldClass);
      return [{ ...order, stack: stackOf() }, first];
    }
    if (!this.#hasRoom(heldClass, wantedClass)) return undefined;
    const noted = { ...order, stack: stackOf() };
    const back = heldClass === wantedClass ? undefined : this.#path(wantedClass, heldClass);
    this.#wantedUnder.set(heldClass, (this.#wantedUnder.get(heldClass) ?? new Map()).set(wantedClass, noted));
    return back ? [noted, ...back] : undefined;
  }

  #hasRoom(...classes: readonly string[]): boolean {
    const added = new Set(classes.filter((name) => !this.#classes.has(name)));
    if (this.#classes.size + added.size > MAX_CLASSES || this.#count === MAX_ORDERS) {
      this.onFull();
      return false;
    }
    for (const name of added) this.#classes.add(name);
    this.#count += 1;
    return true;
  }

  /** Returns a shortest path of orders from one class to another. */
  #path(from: string, to: string): readonly LockOrder[] | undefined {
    const paths = new Map<string, readonly LockOrder[]>([[from, []]]);
    for (const [reached, path] of paths) {
      for (const [wantedClass, order] of this.#wantedUnder.get(reached) ?? []) {
        if (wantedClass === to) return [...path, order];
        if (!paths.has(wantedClass)) paths.set(wantedClass, [...path, order]);
      }
    }
    return undefined;
  }
}

/** Returns whether two orders in one class agree, by the texts of the keys, as in `withLocks`, or by their numbers. */
function agree(one: Omit<LockOrder, 'stack'>, other: Omit<LockOrder, 'stack'>): boolean {
  return (
    one.held < one.wanted === other.held < other.wanted ||
    NUMERIC_COLLATOR.compare(one.held, one.wanted) > 0 === NUMERIC_COLLATOR.compare(other.held, other.wanted) > 0
  );
}
