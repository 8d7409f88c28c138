/** The server numbers the children of a node with a signed 32-bit number, of ten digits or more. */
const SEQUENCE = /:-?\d{9,10}$/u;
const LAST_NUMBER = 2 ** 31 - 1;

/** The number that the server gave a contender's node; `NaN` for another node. */
function sequenceOf(name: string): number {
  return SEQUENCE.test(name) ? Number(name.slice(name.lastIndexOf(':') + 1)) : Number.NaN;
}

/** The contenders among the children of a key, first come first. */
export function inOrder(names: readonly string[]): readonly string[] {
  const numbered = names.map((name) => ({ name, number: sequenceOf(name) }));
  const contenders = numbered.filter(({ number }) => !Number.isNaN(number));
  return contenders.toSorted((a, b) => a.number - b.number).map(({ name }) => name);
}

/**
 * Whether the numbers no longer tell the order: after the last one the server repeats it (3.8), or goes on with
 * negative ones. A key gets there with 2^31 acquisitions, unless its parent was removed meanwhile.
 */
export function numbersAreUsedUp(names: readonly string[]): boolean {
  return names.some((name) => {
    const number = sequenceOf(name);
    return number < 0 || number === LAST_NUMBER;
  });
}
