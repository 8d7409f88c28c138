/** Minimum time-out per address: a connection to a distant server takes several network round trips. */
const MIN_ADDRESS_TIMEOUT_MS = 700;

export class Addresses {
  /** Index of the address that the next opening tries first. */
  #firstIndex = 0;

  constructor(private readonly addresses: readonly string[]) {}

  get count(): number {
    return this.addresses.length;
  }

  /** Returns the time-out for each address when all of them together may take `connectTimeoutMs`. */
  getAddressTimeoutMs(connectTimeoutMs: number): number {
    return Math.max(MIN_ADDRESS_TIMEOUT_MS, Math.floor(connectTimeoutMs / this.count));
  }

  /**
   * Opens a connection to the first address that works, beginning with the one that worked last. If none works, the next
   * opening begins with another address, because the first one may have used up the time.
   * @throws the error that `open` threw for the last address
   */
  async openFirstWorking<T>(open: (address: string) => Promise<T>): Promise<T> {
    // A simultaneous opening may change `#firstIndex` before this one ends.
    const startIndex = this.#firstIndex;
    let lastError: unknown;
    for (let triedCount = 0; triedCount < this.addresses.length; triedCount += 1) {
      const index = (startIndex + triedCount) % this.addresses.length;
      try {
        const connection = await open(this.addresses[index] ?? '');
        this.#firstIndex = index;
        return connection;
      } catch (error) {
        lastError = error;
      }
    }
    this.tryLast(this.addresses[startIndex] ?? '');
    throw lastError;
  }

  /** Makes new connections try this address last if it is the first one now, such as after refused writes. */
  tryLast(address: string): void {
    if (this.addresses[this.#firstIndex] === address) this.#firstIndex = (this.#firstIndex + 1) % this.addresses.length;
  }
}
