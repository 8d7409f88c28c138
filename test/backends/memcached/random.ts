/** Numbers that look random and come again with the same seed: a counter, stirred (https://github.com/skeeto/hash-prospector). */
export class Random {
  #counter: number;

  constructor(seed: number) {
    this.#counter = seed | 0;
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    this.#counter = (this.#counter + 0x9e3779b9) | 0;
    let x = Math.imul(this.#counter ^ (this.#counter >>> 16), 0x21f0aaad);
    x = Math.imul(x ^ (x >>> 15), 0x735a2d97);
    return Math.floor((((x ^ (x >>> 15)) >>> 0) / 2 ** 32) * limit);
  }

  oneOf<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new RangeError('nothing to choose from');
    return choice;
  }
}
