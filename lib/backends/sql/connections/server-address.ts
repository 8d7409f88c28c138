import { LockConfigurationError } from '../../../core/index.js';
import { Addresses } from './addresses.js';

/** Address of the database server, for backends that open connections themselves. */
export interface ServerAddress {
  /**
   * The server's address, such as `postgres://user:password@host:5432/database`. With several addresses, each new
   * connection leads to the first server that answers and takes writes.
   */
  url?: string | readonly string[];
}

/** @throws LockConfigurationError for a value that is no URL of one of the protocols */
export function parseAddresses({ url }: ServerAddress, protocols: readonly string[]): Addresses {
  const urls = url === undefined ? [''] : [url].flat();
  if (url !== undefined && (urls.length === 0 || !urls.every((value) => isUrl(value, protocols)))) {
    // The message does not repeat the URL, which may have a password.
    const expectedForms = protocols.map((protocol) => `${protocol}//user:password@host/database`).join(' or ');
    throw new LockConfigurationError(
      `url must be ${expectedForms}, or a list of these; a password with characters such as # or / has to be written as ` +
        "encodeURIComponent('…') gives it",
      'url',
    );
  }
  return new Addresses(urls);
}

function isUrl(url: unknown, protocols: readonly string[]): boolean {
  return typeof url === 'string' && URL.canParse(url) && protocols.includes(new URL(url).protocol);
}

/** @throws LockConfigurationError for a user or password that the driver could not decode */
export function assertDecodable({ url }: ServerAddress): void {
  for (const address of [url ?? []].flat()) {
    try {
      const { username, password } = new URL(address);
      decodeURIComponent(`${username}:${password}`);
    } catch {
      const advice = 'write the user and the password by encodeURIComponent';
      throw new LockConfigurationError(`url has a % that is no encoding: ${advice}`, 'url');
    }
  }
}
