/**
 * The locks on the server: `<prefix>/<key>/<number>@<lease>` for each owner that holds or waits for `key`. The ranges
 * of two keys never overlap, because a key has its slashes escaped.
 */
export class EtcdLockNames {
  constructor(private readonly prefix: string) {}

  /** The range of those who hold or wait for a key: from `key` up to, not including, `end`. */
  queue(key: string): { readonly key: string; readonly end: string } {
    // Leaves what people can read as it is.
    const path = `${this.prefix}/${key.replace(/[%/\p{Cc}]/gu, encodeURIComponent)}`;
    // 0 is the character after the slash.
    return { key: `${path}/`, end: `${path}0` };
  }

  /** @param number tells apart those who hold or wait for `key` under the same lease */
  entry(key: string, number: number, lease: bigint): string {
    return `${this.queue(key).key}${number}@${lease.toString(16)}`;
  }

  // No lock has a name with two slashes, since no key is empty.

  session(lease: bigint): string {
    return `${this.prefix}//${lease.toString(16)}`;
  }

  /** Holds the number that fencing tokens are counted from. */
  get countedFrom(): string {
    return `${this.prefix}//counted-from`;
  }
}
