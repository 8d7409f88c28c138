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

/** Returns a URL without its password, for people. */
export function withoutPassword(url: string): string {
  return url.replace(/(\/\/[^/@:]*):[^/]*@/u, '$1:…@');
}
