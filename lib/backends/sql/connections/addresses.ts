/** Time-out for one of several addresses. A longer one would leave no time for the next address. */
export const ADDRESS_TIMEOUT_MS = 700;

export class Addresses {
  #lastGoodIndex = 0;

  constructor(private readonly addresses: readonly string[]) {}

  get count(): number {
    return this.addresses.length;
  }

  /** @throws the error that `open` threw for the last address */
  async openFirstWorking<T>(open: (address: string) => Promise<T>): Promise<T> {
    let lastError: unknown;
    for (let triedCount = 0; triedCount < this.addresses.length; triedCount += 1) {
      const index = (this.#lastGoodIndex + triedCount) % this.addresses.length;
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
}
