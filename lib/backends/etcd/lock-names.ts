/**
 * Names of keys on the server: `<prefix>/<key>/<number>@<lease>` for each owner that holds or waits for `key`, with its
 * share at the end, if any. The ranges of two keys never overlap, because the slashes of a key are escaped.
 */
export class EtcdLockNames {
  constructor(private readonly prefix: string) {}

  /** Returns the range of all entries of a key: from `key` up to, not including, `end`. */
  queueRange(key: string): { readonly key: string; readonly end: string } {
    const path = this.#path(key);
    // 0 is the character after the slash.
    return { key: `${path}/`, end: `${path}0` };
  }

  /** Returns the range of all entries whose key starts with `prefix`. */
  rangeOfPrefix(prefix: string): { readonly key: string; readonly end: string } {
    const path = this.#path(prefix);
    return { key: path, end: path.replace(/.$/su, (last) => String.fromCodePoint((last.codePointAt(0) ?? 0) + 1)) };
  }

  /** Returns the key whose queue an entry is in; `undefined` for another name. */
  parseKey(name: string): string | undefined {
    const [, key] = /^([^/]+)\//u.exec(name.slice(this.prefix.length + 1)) ?? [];
    try {
      return key === undefined ? undefined : decodeURIComponent(key);
    } catch {
      // Another program has written this name: the percent signs of a key are escaped.
      return undefined;
    }
  }

  /**
   * Returns the name of an entry.
   * @param number distinguishes the entries of `key` under the same lease
   * @param share end of an owner's name that claims a part of the key only
   */
  entryName(key: string, number: number, lease: bigint, share = ''): string {
    return `${this.queueRange(key).key}${number}@${lease.toString(16)}${share}`;
  }

  // No entry has a name with two slashes in a row, since no key is empty.

  sessionName(lease: bigint): string {
    return `${this.prefix}//${lease.toString(16)}`;
  }

  /** Name of the key that holds the origin of fencing tokens. */
  get tokenOriginName(): string {
    return `${this.prefix}//counted-from`;
  }

  /**
   * Returns the path of a key, which stays readable: only slashes, percent signs and control characters are escaped.
   */
  #path(key: string): string {
    return `${this.prefix}/${key.replace(/[%/\p{Cc}]/gu, encodeURIComponent)}`;
  }
}
