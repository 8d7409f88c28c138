import type { ConnectionOptions } from 'node:tls';
import { areCredentials, assertWhole, type Given, given, refuseOption, shownOption } from '../../core/index.js';

/** As `node:tls` takes them; `true` stands for its defaults. */
export type RedisTls = boolean | ConnectionOptions;

/** A text, or a function that is asked anew for each connection, such as for a token that ends after an hour. */
export type RedisSecret = string | (() => string | Promise<string>);

/** Where a server or a Sentinel listens. */
export interface RedisAddress {
  readonly host: string;
  /** @default 6379, of a Sentinel 26379 */
  readonly port?: number;
}

export interface RedisCredentials {
  /** @default 'default', the user of servers that know a password only */
  readonly username?: string;
  readonly password: string;
}

/** How to get into a server. */
export interface RedisLoginOptions {
  /** A function is asked anew for each connection. They count instead of those in a `url`. */
  readonly credentials?: Given<RedisCredentials>;
  /** With `url`, options for a `rediss://` one; `true` turns a `redis://` one into it. */
  readonly tls?: RedisTls;
}

/** One server by its parts, in the names of ioredis. */
export interface RedisHostOptions extends RedisAddress {
  /** @default the default user of the server */
  readonly username?: RedisSecret;
  readonly password?: RedisSecret;
  readonly tls?: RedisTls;
  /** @default 0 */
  readonly db?: number;
}

/** User and password of a client. */
export interface Login {
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** A login, or a function that is asked anew for each connection. */
export type LoginSource = Login | (() => Promise<Login>);

/** A function of the application that says nothing for so long has failed. */
const MAX_ANSWER_MS = 5_000;

/** Returns how a client gets its login by `credentials`, or `fallback` where there are none. */
export function loginBy(
  option: string,
  credentials: Given<RedisCredentials> | undefined,
  fallback: Login = {},
): LoginSource {
  if (credentials === undefined) return fallback;
  if (typeof credentials !== 'function') return onlyLogin(credentials);
  return async () => {
    const login = await given(option, credentials, MAX_ANSWER_MS);
    if (!isLogin(login)) throw new Error(`the function ${option} gave no { username, password } of texts`);
    return onlyLogin(login);
  };
}

/** Vaults keep the host, the port and more beside a password: none of that becomes an option of the client. */
function onlyLogin({ username, password }: RedisCredentials): Login {
  return { username, password };
}

/** The same for a server that is described by its parts. */
export function loginOf({ username, password }: Pick<RedisHostOptions, 'username' | 'password'>): LoginSource {
  if (typeof username !== 'function' && typeof password !== 'function') return { username, password };
  return async () => ({
    username: await textOf('username', username),
    password: await textOf('password', password),
  });
}

async function textOf(option: string, secret: RedisSecret | undefined): Promise<string | undefined> {
  if (typeof secret !== 'function') return secret;
  const { text } = await given(option, async () => ({ text: await secret() }), MAX_ANSWER_MS);
  if (typeof text !== 'string') throw new Error(`the function ${option} gave no text`);
  return text;
}

export function assertLogin({ credentials, tls }: Partial<Record<keyof RedisLoginOptions, unknown>>): void {
  assertCredentials('credentials', credentials);
  assertTls('tls', tls);
}

/** A secret is never shown. */
export function assertCredentials(option: string, value: unknown): void {
  if (value === undefined || typeof value === 'function' || isLogin(value)) return;
  refuseOption(option, 'must be { username, password }, or a function that gives them; the username may be left out');
}

function isLogin(value: unknown): boolean {
  const { username = 'default', password }: { username?: unknown; password?: unknown } = Object(value);
  return areCredentials({ username, password });
}

export function assertHost(options: RedisHostOptions): void {
  assertAddress('host', options);
  for (const option of ['username', 'password'] as const) {
    const isSecret = ['string', 'function', 'undefined'].includes(typeof options[option]);
    if (!isSecret) refuseOption(option, 'must be a text, or a function that gives one');
  }
  assertTls('tls', options.tls);
  if (options.db !== undefined) assertWhole('db', options.db, 0, 1e6);
}

export function assertTls(option: string, value: unknown): void {
  const fits = value === undefined || typeof value === 'boolean' || (typeof value === 'object' && value !== null);
  if (!fits) refuseOption(option, `must be true, false or options of node:tls; it was ${shownOption(value)}`);
}

export function assertAddresses(option: string, value: unknown): void {
  if (!Array.isArray(value) || value.length === 0) {
    refuseOption(option, `must be a list of one or more { host, port }; it was ${shownOption(value)}`);
  }
  for (const address of value) assertAddress(option, address);
}

export function assertAddress(option: string, value: unknown): void {
  const { host, port = 1 }: { host?: unknown; port?: unknown } = Object(value);
  const fits =
    typeof host === 'string' && host !== '' && Number.isInteger(port) && Number(port) > 0 && Number(port) < 65_536;
  if (fits) return;
  const shown = shownOption({ host, ...(port === 1 ? {} : { port }) });
  refuseOption(option, `must have addresses like { host: '10.0.0.1', port: 6379 }; there was ${shown}`);
}
