import type { ConnectionOptions } from 'node:tls';
import {
  areCredentials,
  assertWhole,
  type ValueOrGetter,
  getPresentValue,
  refuseOption,
  shownOption,
} from '../../core/index.js';

/** Options of `node:tls`; `true` stands for its defaults. */
export type RedisTls = boolean | ConnectionOptions;

/** A text, or a function that is called for each connection, for example for a token that expires after an hour. */
export type RedisSecret = string | (() => string | Promise<string>);

/** Address of a server or a Sentinel. */
export interface RedisAddress {
  readonly host: string;
  /** @default 6379; for a Sentinel 26379 */
  readonly port?: number;
}

export interface RedisCredentials {
  /** @default 'default', the user of a server that asks for a password only */
  readonly username?: string;
  readonly password: string;
}

/** Options for the login at a server. */
export interface RedisLoginOptions {
  /** User and password that replace those in a `url`, or a function that is called for each connection. */
  readonly credentials?: ValueOrGetter<RedisCredentials>;
  /** Options for a `rediss://` url. `true` makes connections to a `redis://` url use TLS. */
  readonly tls?: RedisTls;
}

/** Address and login of one server. The options have the names that ioredis uses. */
export interface RedisHostOptions extends RedisAddress {
  /** @default the default user of the server */
  readonly username?: RedisSecret;
  readonly password?: RedisSecret;
  readonly tls?: RedisTls;
  /** @default 0 */
  readonly db?: number;
}

export interface Login {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** A login, or a function that is called for each connection. */
export type LoginSource = Login | (() => Promise<Login>);

const MAX_LOGIN_FUNCTION_MS = 5_000;

export function createLoginSource(
  option: string,
  credentials: ValueOrGetter<RedisCredentials> | undefined,
  defaultLogin: Login = {},
): LoginSource {
  if (credentials === undefined) return defaultLogin;
  if (typeof credentials !== 'function') return pickLogin(credentials);
  return async () => {
    const login = await getPresentValue(option, credentials, MAX_LOGIN_FUNCTION_MS);
    if (!isLogin(login)) throw new Error(`the function ${option} gave no { username, password } of texts`);
    return pickLogin(login);
  };
}

/** Returns only the two fields of a login: a vault may give more, and the client would take these as options. */
function pickLogin({ username, password }: RedisCredentials): Login {
  return { username, password };
}

export function createLoginSourceFromSecrets({
  username,
  password,
}: Pick<RedisHostOptions, 'username' | 'password'>): LoginSource {
  if (typeof username !== 'function' && typeof password !== 'function') return { username, password };
  return async () => {
    const secrets = [resolveSecret('username', username), resolveSecret('password', password)] as const;
    const [resolvedUsername, resolvedPassword] = await Promise.all(secrets);
    return { username: resolvedUsername, password: resolvedPassword };
  };
}

async function resolveSecret(option: string, secret: RedisSecret | undefined): Promise<string | undefined> {
  if (typeof secret !== 'function') return secret;
  const { text } = await getPresentValue(option, async () => ({ text: await secret() }), MAX_LOGIN_FUNCTION_MS);
  if (typeof text !== 'string') throw new Error(`the function ${option} gave no text`);
  return text;
}

export function assertLoginOptions({ credentials, tls }: Partial<Record<keyof RedisLoginOptions, unknown>>): void {
  assertCredentials('credentials', credentials);
  assertTls('tls', tls);
}

/** @throws LockConfigurationError, which never shows the secret */
export function assertCredentials(option: string, value: unknown): void {
  if (value === undefined || typeof value === 'function' || isLogin(value)) return;
  refuseOption(option, 'must be { username, password }, or a function that gives them; the username may be left out');
}

function isLogin(value: unknown): boolean {
  const { username = 'default', password }: { username?: unknown; password?: unknown } = Object(value);
  return areCredentials({ username, password });
}

export function assertHostOptions(options: RedisHostOptions): void {
  assertAddress('host', options);
  for (const option of ['username', 'password'] as const) {
    const isSecret = ['string', 'function', 'undefined'].includes(typeof options[option]);
    if (!isSecret) refuseOption(option, 'must be a text, or a function that gives one');
  }
  assertTls('tls', options.tls);
  if (options.db !== undefined) assertWhole('db', options.db, 0, 1e6);
}

export function assertTls(option: string, value: unknown): void {
  const isValid = value === undefined || typeof value === 'boolean' || (typeof value === 'object' && value !== null);
  if (!isValid) refuseOption(option, `must be true, false or options of node:tls; it was ${shownOption(value)}`);
}

export function assertAddresses(option: string, value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    refuseOption(option, `must be a list of one or more { host, port }; it was ${shownOption(value)}`);
  }
  for (const address of value) assertAddress(option, address);
}

export function assertAddress(option: string, value: unknown): void {
  // The port may be missing: 1 stands for a missing port.
  const { host, port = 1 }: { host?: unknown; port?: unknown } = Object(value);
  const isValid =
    typeof host === 'string' && host !== '' && Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  if (isValid) return;
  const shownAddress = shownOption({ host, ...(port === 1 ? {} : { port }) });
  refuseOption(option, `must have addresses like { host: '10.0.0.1', port: 6379 }; there was ${shownAddress}`);
}
