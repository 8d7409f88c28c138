import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { connectionError, EtcdError } from '../error.js';
import { Frames } from './grpc-frames.js';
import { Message } from './protobuf.js';

export type Metadata = Readonly<Record<string, string>>;

export interface StreamListener {
  message(message: Message): void;
  /** Comes once and last. `undefined`: the server ended the stream, and all is well. */
  ended(error: Error | undefined): void;
}

/** A proxy has answered, or a server that is no etcd. The request may have been carried out all the same. */
export class HttpError extends Error {
  override readonly name = 'HttpError';

  /** `undefined` where it is gRPC that answers. */
  static of(head: IncomingHttpHeaders & IncomingHttpStatusHeader): HttpError | undefined {
    const { ':status': status, 'content-type': type = 'none', 'grpc-status': code } = head;
    if (code !== undefined || (status === 200 && type.startsWith('application/grpc'))) return undefined;
    return new HttpError(
      status === 200
        ? `the endpoint answered with the content type ${JSON.stringify(type.slice(0, 50))}: is it etcd?`
        : `the endpoint answered with HTTP ${status}: is it etcd, and does what is in between speak gRPC?`,
    );
  }
}

/** The server says that it has not looked at the request: https://www.rfc-editor.org/rfc/rfc9113#section-8.7 */
export class NotProcessedError extends Error {
  override readonly name = 'NotProcessedError';
}

/**
 * Opens a stream of gRPC. `heard` is called with each sign of life on it.
 * @throws NotProcessedError when the session takes no more
 */
export function openStream(
  session: ClientHttp2Session,
  method: string,
  headers: Metadata,
  listener: StreamListener & { readonly heard: () => void },
): ClientHttp2Stream {
  if (session.closed || session.destroyed) throw new NotProcessedError('the connection takes no more requests');
  const stream = session.request({
    ':method': 'POST',
    ':path': method,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const frames = new Frames();
  let failure: Error | undefined;
  let status: IncomingHttpHeaders = {};
  const fail = (error: Error): void => {
    failure ??= error;
    stream.close(constants.NGHTTP2_CANCEL);
  };
  stream.on('response', (head) => {
    listener.heard();
    status = head;
    const error = HttpError.of(head);
    if (error) fail(error);
  });
  stream.on('trailers', (trailers) => (status = trailers));
  stream.on('data', (chunk: Buffer) => {
    listener.heard();
    if (failure) return;
    try {
      for (const message of frames.take(chunk)) listener.message(new Message(message));
    } catch (error) {
      fail(connectionError(error));
    }
  });
  // When the server ends the stream, this side has nothing more to say.
  stream.on('end', () => stream.end());
  stream.on('error', (error) => (failure ??= connectionError(error)));
  stream.on('close', () => {
    const code = status['grpc-status'];
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) {
      listener.ended(new NotProcessedError('the server has not looked at the request'));
    } else if (code === undefined) {
      listener.ended(failure ?? new Error('the connection was lost'));
    } else {
      listener.ended(failure ?? EtcdError.of(code, status['grpc-message']));
    }
  });
  return stream;
}
