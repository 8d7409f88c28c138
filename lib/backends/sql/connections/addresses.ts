/** Minimum time-out per address: a connection to a distant server takes several network round trips. */
const MIN_ADDRESS_TIMEOUT_MS = 700;

export class Addresses {
  #lastGoodIndex = 0;

  constructor(private readonly addresses: readonly string[]) {}

  get count(): number {
    return this.addresses.length;
  }

  /** Returns the time-out for each address when all of them together may take `connectTimeoutMs`. */
  getAddressTimeoutMs(connectTimeoutMs: number): number {
    return Math.max(MIN_ADDRESS_TIMEOUT_MS, Math.floor(connectTimeoutMs / this.count));
  }

  /** @throws the error that `open` threw for the last address */
  async openFirstWorking<T>(open: (address: string) => Promise<T>): Promise<T> {
    // Another opening may change the field meanwhile.
    const firstIndex = this.#lastGoodIndex;
    let lastError: unknown;
    for (let triedCount = 0; triedCount < this.addresses.length; triedCount += 1) {
      const index = (firstIndex + triedCount) % this.addresses.length;
      try {
        const connection = await open(this.addresses[index] ?? '');
        this.#lastGoodIndex = index;
        return connection;
      } catch (error) {
        lastError = error;
      }
    }
    throw lastError;
  }

  /** Makes new connections try this address last, because its server has refused writes. */
  tryLast(address: string): void {
    if (this.addresses[this.#lastGoodIndex] === address)
      this.#lastGoodIndex = (this.#lastGoodIndex + 1) % this.addresses.length;
  }
}
