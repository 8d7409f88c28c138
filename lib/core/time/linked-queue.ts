/** Item of a `LinkedQueue`. It can be in one queue at a time. */
export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
  /** Queue that contains the item. */
  queue: object | undefined;
}

/**
 * First-in-first-out queue that removes any item in constant time and allocates nothing. A `Set` or an array with many
 * changes discards its tables, and old tables keep their items alive until a full garbage collection.
 */
export class LinkedQueue<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  /** Adds an item, which must be in no queue. */
  push(item: T): void {
    item.queue = this;
    item.before = this.#last;
    if (this.#last) this.#last.after = item;
    else this.#first = item;
    this.#last = item;
  }

  delete(item: T): void {
    if (item.queue !== this) return;
    const { before, after } = item;
    if (before) before.after = after;
    else this.#first = after;
    if (after) after.before = before;
    else this.#last = before;
    item.before = undefined;
    item.after = undefined;
    item.queue = undefined;
  }
}
