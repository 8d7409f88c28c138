import type { Shop } from './shop.js';

/**
 * Hears of payments as they begin, from the live events of every process: then the process has the lock, and has read the
 * stock and not written it yet.
 */
export class PaymentWatch {
  readonly #ended = new AbortController();
  #payments = 0;
  #tell: (shop: Shop) => void = () => undefined;

  /** Resolves when all are listened to. */
  static async start(shops: readonly Shop[]): Promise<PaymentWatch> {
    const watch = new PaymentWatch();
    const streams = await Promise.all(
      shops.map(async (shop) => ({ shop, events: await shop.events(watch.#ended.signal) })),
    );
    for (const { shop, events } of streams) void watch.#follow(shop, events);
    return watch;
  }

  /** The process that begins a payment, once there have been so many; `undefined` when `over` aborts before. */
  nextAfter(payments: number, over: AbortSignal): Promise<Shop | undefined> {
    return new Promise((resolve) => {
      this.#tell = (shop) => {
        if (this.#payments > payments) resolve(shop);
      };
      if (over.aborted) resolve(undefined);
      else over.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  }

  end(): void {
    this.#ended.abort();
  }

  async #follow(shop: Shop, events: ReadableStream<string>): Promise<void> {
    try {
      let text = '';
      for await (const chunk of events) {
        const messages = (text + chunk).split('\n\n');
        text = messages.pop() ?? '';
        const payments = messages.filter(isPayment).length;
        this.#payments += payments;
        if (shop.open && payments > 0) this.#tell(shop);
      }
    } catch {
      // The process was killed, or the watch has ended.
    }
  }
}

/** `hello` tells of payments too, but those are over. */
function isPayment(message: string): boolean {
  return message.includes('event: happened') && message.includes('"kind":"paying"');
}
