import { LockConfigurationError } from '../core/index.js';

export interface CommandOptions {
  readonly database?: string | undefined;
  readonly url?: string | undefined;
  readonly table?: string | undefined;
  readonly fence?: string | undefined;
  readonly prefix?: string | undefined;
  readonly limit?: string | undefined;
}

export interface Report {
  /** Whether the exit code of the command is 0. */
  readonly hasSucceeded: boolean;
  readonly lines: readonly string[];
  /** The findings that `--json` prints. */
  readonly data: unknown;
}

/** @throws LockConfigurationError without a URL */
export function getUrl({ url }: CommandOptions): string {
  if (url !== undefined && url !== '') return url;
  throw new LockConfigurationError('give --url, or the variable LOCK_URL', 'url');
}

/** Returns only the scheme, for error messages. A malformed URL may have its password anywhere after the scheme. */
export function describeUrlScheme(url: string): string {
  return /^[^:]{0,20}:/u.exec(url)?.[0] ?? 'something else';
}

/** Returns a well-formed URL without its user, password and query parameters. */
export function removeSecrets(url: string): string {
  return url.replace(/\/\/.*@/u, '//').replace(/\?.*$/u, '');
}
