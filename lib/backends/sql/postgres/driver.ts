import { EventEmitter } from 'node:events';
import { idIn } from '../connections/sockets.js';

type Row = Record<string, unknown>;

interface PostgresClient {
  query(
    statement: { readonly name: string; readonly text: string; readonly values: readonly unknown[] },
    onAnswer: (error: unknown, answer: { readonly rows: Row[] }) => void,
  ): void;
}

/** Statement names by text: at most 63 characters, legible in `pg_prepared_statements`. */
const names = new Map<string, string>();

/**
 * Runs a statement under a name, so that the server parses and plans it once for each connection. Planning our
 * statements takes several times as long as running them.
 * https://node-postgres.com/features/queries#prepared-statements
 */
export function runPrepared(client: unknown, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
  return new Promise((resolve, reject) => {
    if (!isPostgresClient(client)) throw new TypeError('the driver is not pg');
    const name = names.get(text) ?? `${text.replace(/\W+/gu, '_').slice(0, 50)}_${names.size}`;
    names.set(text, name);
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
 * The driver's own options, with a listener for the errors of each client. `pg` removes its listener when it hands out
 * a new client, and ours comes later. A server may end the session in between, in the same packet as its greeting, and
 * an 'error' without a listener ends the process. The end of the socket reports the loss.
 */
export function heard(extra: unknown): object {
  const given: object = typeof extra === 'object' && extra ? extra : {};
  const theirs: unknown = Reflect.get(given, 'verify');
  const verify = (client: unknown, done: (error?: unknown) => void): void => {
    if (client instanceof EventEmitter) client.on('error', () => undefined);
    if (typeof theirs === 'function') Reflect.apply(theirs, given, [client, done]);
    else done();
  };
  return { ...given, verify };
}

/**
 * Whether the server that answers is the one that greeted us. A pooler introduces itself, with an id of its own. Without
 * an id, nobody knows.
 */
export const IS_OUR_SESSION = (parameter: string): string => `pg_backend_pid() = ${parameter}::int`;
export const handshakePid = (client: unknown): string | null => idIn(client, 'processID') ?? null;
