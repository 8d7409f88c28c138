import type { FailureKind } from '../../core/index.js';

/** Error of a request that may have been carried out: its connection ended before the answer. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
  readonly failureKind = 'silent';
}

/** Error for a session that the server does not know. Its znodes are deleted. */
export class SessionExpiredError extends ConnectionLostError {
  constructor() {
    super('the session has expired on the server');
  }
}

export class SessionRefusedError extends Error {
  override readonly name = 'SessionRefusedError';
}

/** Code of the client library for a socket that closed before the answer. A server never sends this code. */
export const CONNECTION_LOSS = -4;
const BAD_ARGUMENTS = -8;
export const NO_NODE = -101;
const NO_AUTH = -102;
export const NO_CHILDREN_FOR_EPHEMERALS = -108;
export const NODE_EXISTS = -110;
export const SESSION_EXPIRED = -112;
export const SESSION_MOVED = -118;
const NOT_READONLY = -119;

/** Codes of `KeeperException`, with advice. After a `final` code a retry brings the same answer. */
const ERROR_CODES: ReadonlyMap<number, readonly [text: string, kind?: 'final']> = new Map([
  [-6, ['UNIMPLEMENTED: mode sequential needs ZooKeeper 3.5.3 or newer', 'final']],
  [BAD_ARGUMENTS, ['BAD_ARGUMENTS', 'final']],
  [NO_NODE, ['NO_NODE']],
  [NO_AUTH, ['NO_AUTH: its ACL does not give this user the right', 'final']],
  [NO_CHILDREN_FOR_EPHEMERALS, ['NO_CHILDREN_FOR_EPHEMERALS']],
  [NODE_EXISTS, ['NODE_EXISTS']],
  [SESSION_EXPIRED, ['SESSION_EXPIRED']],
  [-114, ['INVALID_ACL: an entry of the ACL is not one, or needs authentication first', 'final']],
  [SESSION_MOVED, ['SESSION_MOVED']],
  [NOT_READONLY, ['NOT_READONLY: the server has lost the others, and only reads']],
  [-125, ['QUOTA_EXCEEDED', 'final']],
  [-127, ['THROTTLED_OP: the server has too much to do']],
]);

export class ServerRefusalError extends Error {
  override readonly name = 'ServerRefusalError';

  constructor(
    readonly code: number,
    operation: string,
  ) {
    super(`the server refused to ${operation}: ${ERROR_CODES.get(code)?.[0] ?? `error ${code}`}`);
  }

  get failureKind(): FailureKind {
    if (this.code === NOT_READONLY) return 'elsewhere';
    // A missing permission is no `value` failure, because it concerns the whole prefix and not this key only.
    return this.code === BAD_ARGUMENTS ? 'value' : 'refuses';
  }
}

export function isRefusal(error: unknown, code: number): boolean {
  return error instanceof ServerRefusalError && error.code === code;
}

export function isFinalError(error: unknown): boolean {
  if (error instanceof ServerRefusalError) return ERROR_CODES.get(error.code)?.[1] === 'final';
  return error instanceof SessionRefusedError;
}
