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
  readonly isGood: boolean;
  readonly lines: readonly string[];
  /** The findings that `--json` prints. */
  readonly data: unknown;
}

/** @throws LockConfigurationError without a URL */
export function getUrl({ url }: CommandOptions): string {
  if (url !== undefined && url !== '') return url;
  throw new LockConfigurationError('give --url, or the variable LOCK_URL', 'url');
}

/** Returns the scheme only: passwords may stand anywhere after it, above all in a wrong URL. */
export function getUrlBeginning(url: string): string {
  return /^[^:]{0,20}:/u.exec(url)?.[0] ?? 'something else';
}

/** Returns a URL without its user and parameters, which may have a password. The URL must have worked before. */
export function removeSecrets(url: string): string {
  return url.replace(/\/\/.*@/u, '//').replace(/\?.*$/u, '');
}
