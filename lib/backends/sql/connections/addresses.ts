/** Time in milliseconds for one of several addresses, so that the next one has its time, too. */
export const ADDRESS_MS = 700;

/** The addresses of one database, in the order in which they are tried: the one that was good last comes first. */
export class Addresses {
  #lastGood = 0;

  constructor(private readonly all: readonly string[]) {}

  get count(): number {
    return this.all.length;
  }

  /**
   * Opens the first address that works.
   * @param open rejects when the address does not answer, or leads to a server that takes no writes
   * @throws what `open` threw for the last address
   */
  async openFirst<T>(open: (address: string) => Promise<T>): Promise<T> {
    let failure: unknown;
    for (let tried = 0; tried < this.all.length; tried += 1) {
      const index = (this.#lastGood + tried) % this.all.length;
      try {
        const opened = await open(this.all[index] ?? '');
        this.#lastGood = index;
        return opened;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}
