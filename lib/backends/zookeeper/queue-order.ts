/** Sequence number at the end of a znode's name: signed, of 32 bits, with ten digits or more. */
const SEQUENCE_PATTERN = /:-?\d{9,10}$/u;
const MAX_SEQUENCE = 2 ** 31 - 1;

/** Returns the sequence number of a contender's znode; `NaN` for another znode. */
function parseSequence(name: string): number {
  return SEQUENCE_PATTERN.test(name) ? Number(name.slice(name.lastIndexOf(':') + 1)) : Number.NaN;
}

/** Returns the contenders among the children of a key, in the order of their sequence numbers. */
export function sortBySequence(names: readonly string[]): readonly string[] {
  const numbered = names.map((name) => ({ name, sequence: parseSequence(name) }));
  const contenders = numbered.filter(({ sequence }) => !Number.isNaN(sequence));
  return contenders.toSorted((a, b) => a.sequence - b.sequence).map(({ name }) => name);
}

/**
 * Returns whether sequence numbers no longer tell the order: after the last one the server repeats it (3.8), or
 * continues with negative ones. A key gets there after 2^31 acquisitions, unless its parent was deleted meanwhile.
 */
export function areSequencesExhausted(names: readonly string[]): boolean {
  return names.some((name) => {
    const sequence = parseSequence(name);
    return sequence < 0 || sequence === MAX_SEQUENCE;
  });
}
