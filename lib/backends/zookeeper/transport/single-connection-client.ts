import type { ServerAddress } from '../connect-string.js';
import { SessionExpiredError, SessionRefusedError } from '../error.js';
import type { Client, ZooKeeperWire } from './wire.js';

/** With it another connection resumes a session. */
export interface SessionTicket {
  readonly id: Buffer;
  readonly password: Buffer;
}

export interface Handshake {
  readonly wire: ZooKeeperWire;
  readonly server: ServerAddress;
  readonly sessionTtlMs: number;
  readonly requestTimeoutMs: number;
  readonly ticket: SessionTicket | undefined;
  readonly auth: Buffer | undefined;
}

/** `lost`: the connection ended, and the watch with it. */
export type NodeEvent = 'deleted' | 'changed' | 'lost';

export interface ClientListener {
  /** The server has let us into the session. */
  onReady(): void;
  /** The socket has closed, or must be closed. */
  onOver(why?: Error): void;
  /** An error of the socket, which closes next. */
  onError(error: Error): void;
  onEvent(path: string, event: NodeEvent): void;
  /** The answer to the oldest question is an error that the client does not know. */
  onUnknownError(code: number): void;
}

const DISCONNECTED = 0;
const CONNECTED = 2;
const EXPIRED = -3;
const AUTHENTICATION_FAILED = -4;
const NODE_DELETED = 2;

/**
 * A client that makes one connection to one server, and throws nothing where nobody can catch it. It has nothing of a
 * former client, and registers no watch again. Its choice of servers, its events and its retries are replaced.
 */
export function connectOnce(handshake: Handshake, listener: ClientListener): Client {
  const { wire, server, sessionTtlMs, ticket, auth } = handshake;
  const client = wire.client.createClient('replaced below', {
    sessionTimeout: sessionTtlMs,
    retries: 0,
    ...(ticket && { sessionId: ticket.id, sessionPassword: ticket.password }),
  });
  if (auth) client.addAuthInfo('digest', auth);
  const manager = client.connectionManager;
  manager.findNextServer = (callback) => callback({ ...server });
  manager.watcherManager.emit = ({ type, path }) =>
    listener.onEvent(path, type === NODE_DELETED ? 'deleted' : 'changed');
  manager.on('state', (state) => onState(state, listener));
  guardSocket(client, listener);
  client.connect();
  // After the connection the client would make another one.
  manager.connect = () => undefined;
  return client;
}

function onState(state: number, listener: ClientListener): void {
  if (state === CONNECTED) listener.onReady();
  else if (state === EXPIRED) listener.onOver(new SessionExpiredError());
  else if (state === DISCONNECTED) listener.onOver();
  else if (state === AUTHENTICATION_FAILED)
    listener.onOver(new SessionRefusedError('the server refused to authenticate us'));
}

/** The client looks up the handlers of the socket when it makes one. */
function guardSocket({ connectionManager: manager }: Client, listener: ClientListener): void {
  const onError = manager.onSocketError.bind(manager);
  manager.onSocketError = (error) => {
    listener.onError(error);
    onError(error);
  };
  const read = manager.onSocketData.bind(manager);
  manager.onSocketData = (chunk) => {
    try {
      read(chunk);
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      const code = /^Unknown code: (?<code>-?\d+)$/u.exec(message)?.groups?.['code'];
      if (code === undefined) return listener.onOver(new Error(`the server sent what is no answer: ${message}`));
      listener.onUnknownError(Number(code));
      // The rest of the chunk is still unread.
      if (manager.pendingBuffer) manager.onSocketData(Buffer.alloc(0));
    }
  };
}
