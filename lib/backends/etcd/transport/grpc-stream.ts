import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  type IncomingHttpStatusHeader,
} from 'node:http2';
import { toConnectionError, EtcdError } from '../error.js';
import { GrpcMessageReader } from './grpc-frames.js';
import { Message } from './protobuf.js';

export type Metadata = Readonly<Record<string, string>>;

export interface StreamListener {
  onMessage(message: Message): void;
  /** Called once, and last; without an error when the server ended the stream in good order. */
  onEnd(error: Error | undefined): void;
}

/**
 * Error for an answer of a proxy, or of a server that is no etcd. The request may have been carried out nevertheless.
 */
export class NotGrpcError extends Error {
  override readonly name = 'NotGrpcError';

  static fromHead(responseHead: IncomingHttpHeaders & IncomingHttpStatusHeader): NotGrpcError | undefined {
    const { ':status': status, 'content-type': type = 'none', 'grpc-status': code } = responseHead;
    if (code !== undefined || (status === 200 && type.startsWith('application/grpc'))) return undefined;
    return new NotGrpcError(
      status === 200
        ? `the endpoint answered with the content type ${JSON.stringify(type.slice(0, 50))}: is it etcd?`
        : `the endpoint answered with HTTP ${status}: is it etcd, and does what is in between speak gRPC?`,
    );
  }
}

/** Error for a request that the server has not processed: https://www.rfc-editor.org/rfc/rfc9113#section-8.7 */
export class NotProcessedError extends Error {
  override readonly name = 'NotProcessedError';
}

/** @throws NotProcessedError when the HTTP/2 session takes no new streams */
export function openStream(
  session: ClientHttp2Session,
  method: string,
  headers: Metadata,
  listener: StreamListener & { readonly onActivity: () => void },
): ClientHttp2Stream {
  if (session.closed || session.destroyed) throw new NotProcessedError('the connection takes no more requests');
  const stream = session.request({
    ':method': 'POST',
    ':path': method,
    'content-type': 'application/grpc',
    te: 'trailers',
    ...headers,
  });
  const messageReader = new GrpcMessageReader();
  let failure: Error | undefined;
  let statusHeaders: IncomingHttpHeaders = {};
  const fail = (error: Error): void => {
    failure ??= error;
    stream.close(constants.NGHTTP2_CANCEL);
  };
  stream.on('response', (responseHead) => {
    listener.onActivity();
    // A response without messages may have its status in the head, and no trailers.
    statusHeaders = responseHead;
    const error = NotGrpcError.fromHead(responseHead);
    if (error) fail(error);
  });
  stream.on('trailers', (trailers) => (statusHeaders = trailers));
  stream.on('data', (chunk: Buffer) => {
    listener.onActivity();
    if (failure) return;
    try {
      for (const message of messageReader.read(chunk)) listener.onMessage(new Message(message));
    } catch (error) {
      fail(toConnectionError(error));
    }
  });
  // This side sends nothing after the server has ended the stream.
  stream.on('end', () => stream.end());
  stream.on('error', (error) => {
    if (isOutOfStreams(error)) {
      session.close();
      failure ??= new NotProcessedError('the connection has no stream identifiers left');
    }
    failure ??= toConnectionError(error);
  });
  stream.on('close', () => {
    const code = statusHeaders['grpc-status'];
    if (stream.rstCode === constants.NGHTTP2_REFUSED_STREAM) {
      listener.onEnd(new NotProcessedError('the server has not looked at the request'));
    } else if (code === undefined) {
      listener.onEnd(failure ?? new Error('the connection was lost'));
    } else {
      listener.onEnd(failure ?? EtcdError.fromStatus(code, statusHeaders['grpc-message']));
    }
  });
  return stream;
}

/**
 * A connection has 2^30 streams for the requests of its client: https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
 */
function isOutOfStreams(error: unknown): boolean {
  return Reflect.get(Object(error), 'code') === 'ERR_HTTP2_OUT_OF_STREAMS';
}
