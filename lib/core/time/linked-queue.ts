/** An item of a `LinkedQueue`; it stands in one at a time. */
export interface Linked<T> {
  before: T | undefined;
  after: T | undefined;
  /** The one it stands in. */
  queue: object | undefined;
}

/**
 * First in, first out, and out of the middle as fast, without any allocation. A `Set` or an array from which very much
 * comes and goes leaves its former tables behind: in the old part of the heap, where they keep alive what they last
 * had, and that again what came after it, until the next full collection.
 */
export class LinkedQueue<T extends Linked<T>> {
  #first: T | undefined;
  #last: T | undefined;

  get first(): T | undefined {
    return this.#first;
  }

  /** @param item which must stand in none */
  push(item: T): void {
    item.queue = this;
    item.before = this.#last;
    if (this.#last) this.#last.after = item;
    else this.#first = item;
    this.#last = item;
  }

  /** Does nothing to what does not stand in this one. */
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
