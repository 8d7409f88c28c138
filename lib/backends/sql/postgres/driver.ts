import { EventEmitter } from 'node:events';
import { getConnectionId } from '../connections/sockets.js';

type Row = Record<string, unknown>;

interface PostgresClient {
  query(
    statement: { readonly name: string; readonly text: string; readonly values: readonly unknown[] },
    onAnswer: (error: unknown, answer: { readonly rows: Row[] }) => void,
  ): void;
}

/** Names of prepared statements, by SQL. Each has at most 63 characters and is legible in `pg_prepared_statements`. */
const statementNames = new Map<string, string>();

/**
 * Runs a named statement, which the server parses and plans once for each connection. Planning takes several times as
 * long as the execution.
 * @see https://node-postgres.com/features/queries#prepared-statements
 */
export function runPrepared(client: unknown, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    if (!isPostgresClient(client)) throw new TypeError('the driver is not pg');
    const name = statementNames.get(text) ?? `${text.replace(/\W+/gu, '_').slice(0, 50)}_${statementNames.size}`;
    statementNames.set(text, name);
    client.query({ name, text, values }, (error, answer) => {
      if (error) reject(error);
      else resolve(answer.rows);
    });
  });
}

export function isPostgresClient(client: unknown): client is EventEmitter & PostgresClient {
  return client instanceof EventEmitter && 'query' in client && typeof client.query === 'function';
}

/**
 * Returns the options of the pool of `pg` with a `verify` that adds an error listener to each new client. The pool
 * removes its own listener before it lends a client, and an 'error' event without a listener ends the process. The
 * listener ignores the error, because the watched socket reports the lost connection.
 */
export function addErrorListener(applicationOptions: unknown): object {
  const driverOptions: object = typeof applicationOptions === 'object' && applicationOptions ? applicationOptions : {};
  const applicationVerify: unknown = Reflect.get(driverOptions, 'verify');
  const verify = (client: unknown, done: (error?: unknown) => void): void => {
    if (client instanceof EventEmitter) client.on('error', () => undefined);
    if (typeof applicationVerify === 'function') Reflect.apply(applicationVerify, driverOptions, [client, done]);
    else done();
  };
  return { ...driverOptions, verify };
}

/**
 * Returns a condition that is true in the session whose id is the value of `placeholder`. It is not true for an unknown
 * id, nor behind a pooler, which sends an id of its own in the handshake.
 */
export const isSameSessionSql = (placeholder: string): string => `pg_backend_pid() = ${placeholder}::int`;
export const getHandshakePid = (client: unknown): string | null => getConnectionId(client, 'processID') ?? null;
