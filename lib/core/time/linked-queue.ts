/** Item of a `LinkedQueue`, which can be in one queue at a time. */
export interface Linked<T> {
  previous: T | undefined;
  next: T | undefined;
  /** Queue that contains the item. */
  queue: object | undefined;
}

/**
 * First-in-first-out queue that removes any item in constant time and allocates nothing. A `Set` with many changes
 * replaces its internal table again and again, and old tables keep their items alive until a full garbage collection.
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
    item.previous = this.#last;
    if (this.#last) this.#last.next = item;
    else this.#first = item;
    this.#last = item;
  }

  delete(item: T): void {
    if (item.queue !== this) return;
    const { previous, next } = item;
    if (previous) previous.next = next;
    else this.#first = next;
    if (next) next.previous = previous;
    else this.#last = previous;
    item.previous = undefined;
    item.next = undefined;
    item.queue = undefined;
  }
}
