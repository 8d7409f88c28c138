/** The connection ended before the answer: what was asked for may have been done, or not. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';
}

/** The server does not know the session (any more): its nodes are gone. */
export class SessionExpiredError extends ConnectionLostError {
  constructor() {
    super('the session has expired on the server');
  }
}

/** The backend was closed, or the server takes our credentials for none: asking again is no use. */
export class SessionRefusedError extends Error {
  override readonly name = 'SessionRefusedError';
}

/** Not of a server: the client says so of what it was waiting for when the socket closed. */
export const CONNECTION_LOSS = -4;
const UNIMPLEMENTED = -6;
const BAD_ARGUMENTS = -8;
export const NO_NODE = -101;
const NO_AUTH = -102;
export const NO_CHILDREN_FOR_EPHEMERALS = -108;
export const NODE_EXISTS = -110;
export const SESSION_EXPIRED = -112;
const INVALID_ACL = -114;
export const SESSION_MOVED = -118;
const QUOTA_EXCEEDED = -125;

/** Names of error codes, and advice on them. https://zookeeper.apache.org, `KeeperException.Code` */
const CODES: ReadonlyMap<number, string> = new Map([
  [UNIMPLEMENTED, 'UNIMPLEMENTED: mode sequential needs ZooKeeper 3.5.3 or newer'],
  [BAD_ARGUMENTS, 'BAD_ARGUMENTS'],
  [NO_NODE, 'NO_NODE'],
  [NO_AUTH, 'NO_AUTH: its ACL does not give this user the right'],
  [NO_CHILDREN_FOR_EPHEMERALS, 'NO_CHILDREN_FOR_EPHEMERALS'],
  [NODE_EXISTS, 'NODE_EXISTS'],
  [SESSION_EXPIRED, 'SESSION_EXPIRED'],
  [INVALID_ACL, 'INVALID_ACL: an entry of the ACL is not one, or needs authentication first'],
  [SESSION_MOVED, 'SESSION_MOVED'],
  [-119, 'NOT_READONLY: the server has lost the others, and only reads'],
  [QUOTA_EXCEEDED, 'QUOTA_EXCEEDED'],
  [-127, 'THROTTLED_OP: the server has too much to do'],
]);

/** Asking again brings the same answer. All other refusals may pass. */
const FINAL: ReadonlySet<number> = new Set([UNIMPLEMENTED, BAD_ARGUMENTS, NO_AUTH, INVALID_ACL, QUOTA_EXCEEDED]);

/** The server answered with an error. */
export class ServerRefusalError extends Error {
  override readonly name = 'ServerRefusalError';

  constructor(
    readonly code: number,
    operation: string,
  ) {
    super(`the server refused to ${operation}: ${CODES.get(code) ?? `error ${code}`}`);
  }
}

/** Whether `error` is the server's answer with this code. */
export function isRefusal(error: unknown, code: number): boolean {
  return error instanceof ServerRefusalError && error.code === code;
}

/** Whether asking again is of no use: we have no right to, or the backend is closed. */
export function isFinal(error: unknown): boolean {
  return error instanceof SessionRefusedError || (error instanceof ServerRefusalError && FINAL.has(error.code));
}
