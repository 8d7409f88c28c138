import { errorText, FrameReader } from '../../../core/index.js';
import type { ServerAddress } from '../connect-string.js';
import { SessionExpiredError, SessionRefusedError } from '../error.js';
import type { Client, ZooKeeperLibrary } from './wire.js';

export interface SessionIdentity {
  readonly id: Buffer;
  readonly password: Buffer;
}

export interface ZooKeeperConnectionSettings {
  readonly library: ZooKeeperLibrary;
  readonly server: ServerAddress;
  readonly sessionTtlMs: number;
  readonly requestTimeoutMs: number;
  readonly identity: SessionIdentity | undefined;
  readonly auth: Buffer | undefined;
}

/** Event of a watch. `lost`: the connection ended, and the watch with it. */
export type ZnodeEvent = 'deleted' | 'changed' | 'lost';

export interface ClientListener {
  onReady(): void;
  onEnd(reason?: Error): void;
  onError(error: Error): void;
  onEvent(path: string, event: ZnodeEvent): void;
  /** Handles an error code that the library does not know, in the answer to the oldest request. */
  onUnknownError(code: number): void;
}

const STATE_DISCONNECTED = 0;
const STATE_CONNECTED = 2;
const STATE_EXPIRED = -3;
const STATE_AUTHENTICATION_FAILED = -4;
const NODE_DELETED = 2;
/** Number of bytes at the start of a frame. They tell the length of the rest. */
const LENGTH_BYTES = 4;

/**
 * Creates a client of the library that makes one connection only, and throws nothing where no caller can catch it.
 * Replaces the library's choice of servers, its events and its retries.
 */
export function connectOnce(settings: ZooKeeperConnectionSettings, listener: ClientListener): Client {
  const { library, server, sessionTtlMs, identity, auth } = settings;
  const libraryClient = library.client.createClient('replaced below', {
    sessionTimeout: sessionTtlMs,
    retries: 0,
    ...(identity && { sessionId: identity.id, sessionPassword: identity.password }),
  });
  if (auth) libraryClient.addAuthInfo('digest', auth);
  const manager = libraryClient.connectionManager;
  manager.findNextServer = (callback) => callback({ ...server });
  manager.watcherManager.emit = ({ type, path }) =>
    listener.onEvent(path, type === NODE_DELETED ? 'deleted' : 'changed');
  manager.on('state', (state) => onState(state, listener));
  replaceSocketHandlers(libraryClient, listener);
  libraryClient.connect();
  // Otherwise the library would connect again when this connection ends.
  manager.connect = () => undefined;
  return libraryClient;
}

function onState(state: number, listener: ClientListener): void {
  if (state === STATE_CONNECTED) listener.onReady();
  else if (state === STATE_EXPIRED) listener.onEnd(new SessionExpiredError());
  else if (state === STATE_DISCONNECTED) listener.onEnd();
  else if (state === STATE_AUTHENTICATION_FAILED)
    listener.onEnd(new SessionRefusedError('the server refused to authenticate us'));
}

/** Must be called before `connect`: the library looks up these handlers when it creates a socket. */
function replaceSocketHandlers({ connectionManager: manager }: Client, listener: ClientListener): void {
  const onLibraryError = manager.onSocketError.bind(manager);
  manager.onSocketError = (error) => {
    listener.onError(error);
    onLibraryError(error);
  };
  const readFrameByLibrary = manager.onSocketData.bind(manager);
  const frameReader = new FrameReader(LENGTH_BYTES, readFrameLength);
  // The library calls itself for each further frame of a chunk. Some 3,000 short answers would exhaust the stack.
  manager.onSocketData = (chunk) => {
    try {
      for (const frame of frameReader.read(chunk)) readFrameOrReportCode(frame);
    } catch (error) {
      listener.onEnd(new Error(`the server sent what is no answer: ${errorText(error)}`));
    }
  };
  const readFrameOrReportCode = (frame: Buffer): void => {
    try {
      readFrameByLibrary(frame);
    } catch (error) {
      const code = /^Unknown code: (?<code>-?\d+)$/u.exec(errorText(error))?.groups?.['code'];
      if (code === undefined) throw error;
      listener.onUnknownError(Number(code));
    }
  };
}

function readFrameLength(bytes: Buffer): number {
  const length = bytes.readInt32BE();
  if (length < 0) throw new Error(`a frame of ${length} bytes`);
  return LENGTH_BYTES + length;
}
