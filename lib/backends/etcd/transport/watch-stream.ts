import { type ClientHttp2Stream, constants } from 'node:http2';
import type { EtcdClient } from './client.js';
import { frame } from './grpc-frames.js';
import { METHOD } from './messages.js';
import { encode, type Message } from './protobuf.js';

export interface Watch {
  /** It still stands, and a new one would have the same rights and take the same route. */
  isCurrent(): boolean;
  end(): void;
}

/** One key, or all up to, not including, `end`: of those, only the deletions. */
export interface Watched {
  readonly key: string;
  readonly end?: string;
}

/** A list of filters with the one that is 0. */
const WITHOUT_PUTS = Uint8Array.of(0);

/**
 * Watches of many keys over one stream, which keeps the rights and the route that it was opened with. etcd does not say
 * which watch it refuses: one refusal ends the stream.
 */
export class WatchStream {
  readonly #wakes = new Map<bigint, () => void>();
  readonly #stream: Promise<ClientHttp2Stream>;
  #route: number | undefined;
  #lastId = 0n;
  #retired = false;
  #ended = false;

  /** @param onEnd is called when this process did not end it, with the wake-ups of keys that may have gone unseen */
  constructor(
    private readonly client: EtcdClient,
    private readonly onEnd: (reason: string, wakes: readonly (() => void)[]) => void,
  ) {
    this.#stream = client.stream(METHOD.watch, {
      message: (message) => this.#onMessage(message),
      ended: (error) => this.#end(error?.message ?? 'the server ended it'),
    });
    this.#stream.then(
      () => (this.#route = client.route),
      (error: unknown) => this.#end(error instanceof Error ? error.message : 'it could not be opened'),
    );
  }

  /** A new one would have the same rights, and take the same route. */
  get current(): boolean {
    return !this.#ended && (this.#route === undefined || this.#route === this.client.route);
  }

  watch({ key, end }: Watched, from: bigint, wake: () => void): Watch {
    const id = ++this.#lastId;
    this.#wakes.set(id, wake);
    this.#send(encode([1, encode([1, key], [2, end], [3, from], [5, end && WITHOUT_PUTS], [7, id])]));
    return {
      isCurrent: () => this.current && this.#wakes.has(id),
      end: () => this.#forget(id, { cancel: true }),
    };
  }

  /** Takes no new watches, and ends with the last one that it has. */
  retire(): void {
    this.#retired = true;
    if (this.#wakes.size === 0) this.#close();
  }

  #forget(id: bigint, { cancel }: { readonly cancel: boolean }): void {
    if (!this.#wakes.delete(id)) return;
    if (this.#retired && this.#wakes.size === 0) this.#close();
    else if (cancel) this.#send(encode([2, encode([1, id])]));
  }

  #onMessage(message: Message): void {
    const id = message.integer(2);
    const [created, canceled] = [message.flag(3), message.flag(4)];
    const [compacted, gone] = [message.flag(5), message.messages(11).length > 0];
    const wake = this.#wakes.get(id);
    // A refusal has the id -1. The confirmation of our own cancel comes without `created`.
    if (canceled && !compacted && (created || wake)) return this.#end(message.text(6) || 'a watch was refused');
    if (!wake || !(canceled || gone)) return;
    this.#forget(id, { cancel: !canceled });
    wake();
  }

  #end(reason: string): void {
    if (this.#ended) return;
    const wakes = [...this.#wakes.values()];
    this.#wakes.clear();
    this.#close();
    this.onEnd(reason, wakes);
  }

  #send(request: Buffer): void {
    this.#onceOpen((stream) => stream.writable && stream.write(frame(request)));
  }

  #close(): void {
    this.#ended = true;
    this.#onceOpen((stream) => stream.close(constants.NGHTTP2_CANCEL));
  }

  #onceOpen(use: (stream: ClientHttp2Stream) => void): void {
    this.#stream.then(use, () => undefined);
  }
}
