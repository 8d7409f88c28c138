/** Milliseconds that one of several addresses may take to answer. A longer time would leave none for the next address. */
export const ADDRESS_TIMEOUT_MS = 700;

/** The addresses of one database. The address that worked last is tried first. */
export class Addresses {
  #lastGoodIndex = 0;

  constructor(private readonly addresses: readonly string[]) {}

  get count(): number {
    return this.addresses.length;
  }

  /**
   * Opens the first address that works.
   * @param open rejects when the address does not answer, or leads to a server that takes no writes
   * @throws the error that `open` threw for the last address
   */
  async openFirstWorking<T>(open: (address: string) => Promise<T>): Promise<T> {
    let failure: unknown;
    for (let triedCount = 0; triedCount < this.addresses.length; triedCount += 1) {
      const index = (this.#lastGoodIndex + triedCount) % this.addresses.length;
      try {
        const connection = await open(this.addresses[index] ?? '');
        this.#lastGoodIndex = index;
        return connection;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}
