import { LockConfigurationError } from '../core/index.js';

/** Options of all commands, as they were typed. */
export interface CommandOptions {
  readonly database?: string | undefined;
  readonly url?: string | undefined;
  readonly table?: string | undefined;
  readonly fence?: string | undefined;
  readonly prefix?: string | undefined;
  readonly limit?: string | undefined;
}

/** The findings of a command. */
export interface Report {
  /** Whether the command ends with 0. */
  readonly isGood: boolean;
  readonly lines: readonly string[];
  /** The same for `--json`. */
  readonly data: unknown;
}

/** @throws LockConfigurationError without a URL */
export function urlOf({ url }: CommandOptions): string {
  if (url !== undefined && url !== '') return url;
  throw new LockConfigurationError('give --url, or the variable LOCK_URL', 'url');
}

/** Returns the beginning of a URL, for people. Passwords may stand anywhere behind it, above all in a wrong one. */
export function beginningOf(url: string): string {
  return /^[^:]{0,20}:/u.exec(url)?.[0] ?? 'something else';
}

/** Returns a URL that has worked, without its user and its parameters, either of which may have a password. */
export function addressIn(url: string): string {
  return url.replace(/\/\/.*@/u, '//').replace(/\?.*$/u, '');
}
