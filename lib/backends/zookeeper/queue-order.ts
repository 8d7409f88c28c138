/** Sequence number at the end of a znode's name: 32 bits, signed, padded to ten characters. */
const SEQUENCE_PATTERN = /:-?\d{9,10}$/u;
const MAX_SEQUENCE = 2 ** 31 - 1;

function parseSequence(name: string): number {
  return SEQUENCE_PATTERN.test(name) ? Number(name.slice(name.lastIndexOf(':') + 1)) : Number.NaN;
}

/** Sorts the contenders, and drops other children of the key. */
export function sortBySequence(names: readonly string[]): readonly string[] {
  const namesWithSequence = names.map((name) => ({ name, sequence: parseSequence(name) }));
  const contenders = namesWithSequence.filter(({ sequence }) => !Number.isNaN(sequence));
  return contenders.toSorted((a, b) => a.sequence - b.sequence).map(({ name }) => name);
}

/**
 * Returns whether sequence numbers no longer tell the order. After 2^31 acquisitions of a key, the server repeats the
 * last number (ZooKeeper 3.8), or continues with negative numbers.
 */
export function areSequencesExhausted(names: readonly string[]): boolean {
  return names.some((name) => {
    const sequence = parseSequence(name);
    return sequence < 0 || sequence === MAX_SEQUENCE;
  });
}
