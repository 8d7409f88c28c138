/**
 * The locks on the server: `<prefix>/<key>/<number>@<lease>` for each owner that holds or waits for `key`, with its
 * share behind, if any. The ranges of two keys never overlap, because a key has its slashes escaped.
 */
export class EtcdLockNames {
  constructor(private readonly prefix: string) {}

  /** The range of those who hold or wait for a key: from `key` up to, not including, `end`. */
  queue(key: string): { readonly key: string; readonly end: string } {
    const path = this.#path(key);
    // 0 is the character after the slash.
    return { key: `${path}/`, end: `${path}0` };
  }

  /** The range of all those whose key begins with `beginning`. */
  beginningWith(beginning: string): { readonly key: string; readonly end: string } {
    const path = this.#path(beginning);
    return { key: path, end: path.replace(/.$/su, (last) => String.fromCodePoint((last.codePointAt(0) ?? 0) + 1)) };
  }

  /** The key that an entry is in the queue of; `undefined` for another name. */
  keyOf(name: string): string | undefined {
    const [, key] = /^([^/]+)\//u.exec(name.slice(this.prefix.length + 1)) ?? [];
    try {
      return key === undefined ? undefined : decodeURIComponent(key);
    } catch {
      // Another program has written it: a lock's name has its percent signs escaped.
      return undefined;
    }
  }

  /**
   * @param number tells apart those who hold or wait for `key` under the same lease
   * @param share how an owner's name ends that does not want all of the key
   */
  entry(key: string, number: number, lease: bigint, share = ''): string {
    return `${this.queue(key).key}${number}@${lease.toString(16)}${share}`;
  }

  // No lock has a name with two slashes, since no key is empty.

  session(lease: bigint): string {
    return `${this.prefix}//${lease.toString(16)}`;
  }

  /** Holds the number that fencing tokens are counted from. */
  get countedFrom(): string {
    return `${this.prefix}//counted-from`;
  }

  /** Leaves what people can read as it is. */
  #path(key: string): string {
    return `${this.prefix}/${key.replace(/[%/\p{Cc}]/gu, encodeURIComponent)}`;
  }
}
