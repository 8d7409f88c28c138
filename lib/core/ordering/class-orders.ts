import type { LockOrder } from '../events/lock-observer.js';

const MOST_CLASSES = 1_000;
/** Each keeps a stack. */
const MOST_ORDERS = 10_000;

const NUMERIC = new Intl.Collator('en', { numeric: true });

/** In which order this process has taken keys, by their classes: what each was first wanted under. */
export class ClassOrders {
  readonly #wantedUnder = new Map<string, Map<string, LockOrder>>();
  readonly #classes = new Set<string>();
  readonly #suspects = new Set<string>();
  #count = 0;

  /** @param onFull called when there are too many classes to note another one */
  constructor(private readonly onFull: () => void) {}

  /** Notes an order that is new, and returns the circle that it closes. `stackOf` is called for one that is noted. */
  note(order: Omit<LockOrder, 'stack'>, stackOf: () => string): readonly LockOrder[] | undefined {
    const { heldClass, wantedClass } = order;
    const first = this.#wantedUnder.get(heldClass)?.get(wantedClass);
    if (first) {
      if (heldClass !== wantedClass || this.#suspects.has(heldClass) || isAlike(first, order)) return undefined;
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
    if (this.#classes.size + added.size > MOST_CLASSES || this.#count === MOST_ORDERS) {
      this.onFull();
      return false;
    }
    for (const name of added) this.#classes.add(name);
    this.#count += 1;
    return true;
  }

  /** A shortest one. */
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

/** Keys of one class are taken in the order of their texts, as `withLocks` does, or of the numbers in them. */
function isAlike(one: Omit<LockOrder, 'stack'>, other: Omit<LockOrder, 'stack'>): boolean {
  return (
    one.held < one.wanted === other.held < other.wanted ||
    NUMERIC.compare(one.held, one.wanted) > 0 === NUMERIC.compare(other.held, other.wanted) > 0
  );
}
