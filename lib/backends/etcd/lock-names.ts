/**
 * Names of etcd keys. An entry has the name `<prefix>/<key>/<number>@<lease>`, and after it the suffix of an owner that
 * is not exclusive. The queues of two keys never overlap, because the slashes of a key are escaped.
 */
export class EtcdLockNames {
  constructor(private readonly prefix: string) {}

  queueRange(key: string): { readonly key: string; readonly end: string } {
    const path = this.#path(key);
    // 0 is the character after the slash.
    return { key: `${path}/`, end: `${path}0` };
  }

  /** Returns the range of the keys with this prefix. Its end is the path with the last character raised by one. */
  rangeOfPrefix(keyPrefix: string): { readonly key: string; readonly end: string } {
    const path = this.#path(keyPrefix);
    return { key: path, end: path.replace(/.$/su, (last) => String.fromCodePoint((last.codePointAt(0) ?? 0) + 1)) };
  }

  /** Returns the lock's key in the name of an entry, and `undefined` for a name that contains no key. */
  parseKey(name: string): string | undefined {
    const [, key] = /^([^/]+)\//u.exec(name.slice(this.prefix.length + 1)) ?? [];
    try {
      return key === undefined ? undefined : decodeURIComponent(key);
    } catch {
      // Another program wrote this name: `#path` escapes percent signs, so that its names can always be decoded.
      return undefined;
    }
  }

  entryName(key: string, entryNumber: string | number, lease: bigint, claimSuffix = ''): string {
    return `${this.queueRange(key).key}${entryNumber}@${lease.toString(16)}${claimSuffix}`;
  }

  // The next two names contain two slashes in a row, unlike the name of an entry, because no key is empty.

  sessionKeyName(lease: bigint): string {
    return `${this.prefix}//${lease.toString(16)}`;
  }

  get tokenOriginName(): string {
    return `${this.prefix}//counted-from`;
  }

  #path(key: string): string {
    return `${this.prefix}/${key.replace(/[%/\p{Cc}]/gu, encodeURIComponent)}`;
  }
}
