import { type Clock, systemClock } from '../../core/index.js';
import type { EtcdClient } from './etcd-client.js';
import { isRefusal } from './etcd-error.js';
import type { MessageStream } from './grpc-connection.js';
import { METHOD } from './messages.js';
import { encode, type Message } from './wire.js';

/** Before somebody who was refused a watch looks again: often enough without it, and no storm of questions. */
const REFUSED_MS = 500;

/**
 * Tells of keys that go, over one stream for all of them. No more than a wake-up: whoever is told looks, so a stream that
 * breaks, or a revision that was compacted away, is told as if the key were gone, and nothing ever has to be resumed.
 */
export class DeletionWatch {
  readonly #wakes = new Map<bigint, () => void>();
  #stream: Promise<MessageStream> | undefined;
  #lastId = 0n;

  constructor(
    private readonly client: EtcdClient,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Calls `wake` at most once, when `key` may have gone since the revision `from`. What it returns ends that. */
  onDeletion(key: string, from: bigint, wake: () => void): () => void {
    const id = ++this.#lastId;
    this.#wakes.set(id, wake);
    this.#send(encode([1, encode([1, key], [3, from], [7, id])]));
    return () => {
      if (this.#wakes.delete(id)) this.#cancel(id);
    };
  }

  close(): void {
    this.#wakes.clear();
    this.#stream?.then(
      (stream) => stream.close(),
      () => undefined,
    );
  }

  #send(request: Buffer): void {
    const opening = (this.#stream ??= this.#open());
    opening.then(
      (stream) => stream.send(request),
      (error: unknown) => this.#onEnd(opening, error),
    );
  }

  #open(): Promise<MessageStream> {
    const opening: Promise<MessageStream> = this.client.stream(METHOD.watch, {
      message: (message) => this.#onMessage(message),
      ended: (error) => this.#onEnd(opening, error),
    });
    return opening;
  }

  #cancel(id: bigint): void {
    if (this.#stream) this.#send(encode([2, encode([1, id])]));
  }

  #onMessage(message: Message): void {
    const id = message.integer(2);
    const wake = this.#wakes.get(id);
    const [canceled, compacted, gone] = [message.flag(4), message.flag(5), message.messages(11).length > 0];
    if (!wake || !(canceled || gone)) return;
    this.#wakes.delete(id);
    if (!canceled) this.#cancel(id);
    if (compacted || gone) wake();
    else this.#onRefusal(wake);
  }

  /** A stream has the rights that it was opened with: the next one may have others. */
  #onRefusal(wake: () => void): void {
    this.clock.schedule(REFUSED_MS, wake);
    this.#stream?.then(
      (stream) => stream.close(),
      () => undefined,
    );
  }

  #onEnd(ended: Promise<MessageStream>, error?: unknown): void {
    if (this.#stream !== ended) return;
    this.#stream = undefined;
    const wakes = [...this.#wakes.values()];
    this.#wakes.clear();
    for (const wake of wakes) {
      if (isRefusal(error)) this.clock.schedule(REFUSED_MS, wake);
      else wake();
    }
  }
}
