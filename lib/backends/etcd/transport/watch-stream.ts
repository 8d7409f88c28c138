import { type ClientHttp2Stream, constants } from 'node:http2';
import type { EtcdClient } from './client.js';
import { encodeFrame } from './grpc-frames.js';
import { METHOD } from './messages.js';
import { encode, type Message } from './protobuf.js';

export interface Watch {
  /** Returns whether the watch still exists, and a new one would use the same connection and token. */
  isCurrent(): boolean;
  end(): void;
}

/** One key, or the range up to, not including, `end`. In a range, writes do not call `wake`. */
export interface WatchedKeys {
  readonly key: string;
  readonly end?: string;
}

/** List of filters that contains only `NOPUT`, which is 0. */
const NO_PUT_FILTER = Uint8Array.of(0);

/** Watches of many keys over one stream. etcd does not tell which watch it refuses, so one refusal ends the stream. */
export class WatchStream {
  readonly #wakeCallbacksById = new Map<bigint, () => void>();
  readonly #stream: Promise<ClientHttp2Stream>;
  #accessVersion: number | undefined;
  #lastId = 0n;
  #isRetired = false;
  #hasEnded = false;

  /**
   * @param onEnd is called when the stream ends by itself, with the callbacks of all watches: a deletion may have been
   * missed
   */
  constructor(
    private readonly client: EtcdClient,
    private readonly onEnd: (reason: string, wakeCallbacks: readonly (() => void)[]) => void,
  ) {
    this.#stream = client.openStream(METHOD.watch, {
      onMessage: (message) => this.#onMessage(message),
      onEnd: (error) => this.#end(error?.message ?? 'the server ended it'),
    });
    this.#stream.then(
      () => (this.#accessVersion = client.accessVersion),
      (error: unknown) => this.#end(error instanceof Error ? error.message : 'it could not be opened'),
    );
  }

  get isCurrent(): boolean {
    return !this.#hasEnded && (this.#accessVersion === undefined || this.#accessVersion === this.client.accessVersion);
  }

  watch({ key, end }: WatchedKeys, fromRevision: bigint, wake: () => void): Watch {
    const id = ++this.#lastId;
    this.#wakeCallbacksById.set(id, wake);
    // Fields: the key, the end of the range, the first revision, filters, and the id.
    this.#send(encode([1, encode([1, key], [2, end], [3, fromRevision], [5, end && NO_PUT_FILTER], [7, id])]));
    return {
      isCurrent: () => this.isCurrent && this.#wakeCallbacksById.has(id),
      end: () => this.#removeWatch(id, { cancel: true }),
    };
  }

  /** Closes the stream as soon as it has no watches. */
  retire(): void {
    this.#isRetired = true;
    if (this.#wakeCallbacksById.size === 0) this.#close();
  }

  #removeWatch(id: bigint, { cancel }: { readonly cancel: boolean }): void {
    if (!this.#wakeCallbacksById.delete(id)) return;
    if (this.#isRetired && this.#wakeCallbacksById.size === 0) this.#close();
    else if (cancel) this.#send(encode([2, encode([1, id])]));
  }

  #onMessage(message: Message): void {
    const id = message.integer(2);
    const [isCreated, isCanceled] = [message.flag(3), message.flag(4)];
    const [isCompacted, isDeleted] = [message.flag(5), message.messages(11).length > 0];
    const wake = this.#wakeCallbacksById.get(id);
    // A refusal has the id -1. The confirmation of a cancellation by this process comes without `isCreated`.
    if (isCanceled && !isCompacted && (isCreated || wake)) return this.#end(message.text(6) || 'a watch was refused');
    if (!wake || !(isCanceled || isDeleted)) return;
    this.#removeWatch(id, { cancel: !isCanceled });
    wake();
  }

  #end(reason: string): void {
    if (this.#hasEnded) return;
    const wakeCallbacks = [...this.#wakeCallbacksById.values()];
    this.#wakeCallbacksById.clear();
    this.#close();
    this.onEnd(reason, wakeCallbacks);
  }

  #send(request: Buffer): void {
    this.#useStream((stream) => stream.writable && stream.write(encodeFrame(request)));
  }

  #close(): void {
    this.#hasEnded = true;
    this.#useStream((stream) => stream.close(constants.NGHTTP2_CANCEL));
  }

  #useStream(use: (stream: ClientHttp2Stream) => void): void {
    this.#stream.then(use, () => undefined);
  }
}
