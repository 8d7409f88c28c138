import type { Shop } from './shop.js';

/** Waits for payments as they begin. The shop has the lock then, and has read the stock and not written it yet. */
export class PaymentWatch {
  #payments = 0;
  #onPayment: (shop: Shop) => void = () => undefined;

  constructor(shops: readonly Shop[]) {
    for (const shop of shops) {
      shop.onPayment(() => {
        this.#payments += 1;
        if (shop.open) this.#onPayment(shop);
      });
    }
  }

  /** Returns the shop that begins the next payment after so many others; `undefined` when `over` aborts before. */
  nextAfter(payments: number, over: AbortSignal): Promise<Shop | undefined> {
    return new Promise((resolve) => {
      this.#onPayment = (shop) => {
        if (this.#payments > payments) resolve(shop);
      };
      if (over.aborted) resolve(undefined);
      else over.addEventListener('abort', () => resolve(undefined), { once: true });
    });
  }
}
