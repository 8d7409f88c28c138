type Mode = 'forward' | 'hold' | 'drop';

interface Packet {
  readonly dueAt: number;
  readonly deliver: () => void;
}

/**
 * One direction of one connection: an ordered queue of bytes, ends and resets, whose exit can be held, slowed down or
 * emptied into nothing. Order is kept whatever happens.
 */
export class Pipe {
  delayMs = 0;
  #mode: Mode = 'forward';
  #queue: Packet[] = [];
  #late: { readonly ms: number; readonly delivered: () => void } | undefined;
  #timer: NodeJS.Timeout | undefined;
  #lossy = false;
  #closed = false;

  /** Something was swallowed: what comes later would make no sense to the receiver. */
  get lossy(): boolean {
    return this.#lossy;
  }

  set mode(mode: Mode) {
    this.#mode = mode;
    this.#pump();
  }

  send(deliver: () => void): void {
    if (this.#closed) return;
    const late = this.#late;
    this.#late = undefined;
    this.#queue.push({
      dueAt: performance.now() + this.delayMs + (late?.ms ?? 0),
      deliver: () => {
        deliver();
        late?.delivered();
      },
    });
    this.#pump();
  }

  /** The next thing sent comes this much later, and all after it behind it. Resolves when it has been delivered. */
  delayNext(ms: number): Promise<void> {
    return new Promise((delivered) => {
      this.#late = { ms, delivered };
    });
  }

  /** Swallows everything from now on, for good. */
  close(): void {
    this.#closed = true;
    this.#queue = [];
    clearTimeout(this.#timer);
  }

  #pump(): void {
    clearTimeout(this.#timer);
    if (this.#mode === 'drop' && this.#queue.length > 0) {
      this.#lossy = true;
      this.#queue = [];
    }
    for (let next = this.#queue[0]; next !== undefined && this.#mode === 'forward'; next = this.#queue[0]) {
      const waitMs = next.dueAt - performance.now();
      if (waitMs > 0) {
        this.#timer = setTimeout(() => this.#pump(), waitMs);
        return;
      }
      this.#queue.shift();
      next.deliver();
    }
  }
}
