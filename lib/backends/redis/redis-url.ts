import { refuseOption } from '../../core/index.js';
import type { Login } from './access-options.js';

const REDIS_PORT = 6_379;

/** The parts of a Redis URL: https://www.iana.org/assignments/uri-schemes/prov/redis */
export interface RedisLocation extends Login {
  readonly host: string;
  readonly port: number;
  readonly db: number;
  /** IP version, 4 or 6; 0 for both. */
  readonly family: number;
  readonly isTls: boolean;
}

/**
 * Reads only `db` and `family` from the query: the backend decides on other settings of a client.
 * @param suffix text that error messages add to the expected form
 * @throws LockConfigurationError, which never shows the URL: it may have a password
 */
export function readRedisUrl(option: string, url: unknown, suffix = ''): RedisLocation {
  const expectedForm = 'redis://user:password@host:6379/0 or rediss://…';
  if (typeof url !== 'string' || !URL.canParse(url) || !/^rediss?:$/u.test(new URL(url).protocol)) {
    const hint = "; a password with characters such as # or / has to be written as encodeURIComponent('…') gives it";
    return refuseOption(option, `must look like ${expectedForm}${suffix}${hint}`);
  }
  const { protocol, hostname, port, username, password, pathname, searchParams } = new URL(url);
  const parseNumber = (part: string, text: string): number => {
    if (/^\d{1,7}$/u.test(text)) return Number(text);
    return refuseOption(option, `must look like ${expectedForm}${suffix}; its ${part} is no number`);
  };
  const path = pathname.slice(1);
  return {
    host: hostname === '' ? 'localhost' : hostname.replace(/^\[|\]$/gu, ''),
    port: port === '' ? REDIS_PORT : Number(port),
    db: parseNumber('database', path === '' ? (searchParams.get('db') ?? '0') : path),
    family: parseNumber('family', searchParams.get('family') ?? '0'),
    isTls: protocol === 'rediss:',
    ...(username === '' ? {} : { username: decodePart(option, username) }),
    ...(password === '' ? {} : { password: decodePart(option, password) }),
  };
}

function decodePart(option: string, text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return refuseOption(option, 'has a % that is no encoding: write the user and the password by encodeURIComponent');
  }
}
