import { type ArgumentsHost, HttpException } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { inspect } from 'node:util';
import { type ErrorAnswer, type LibraryError, getAnswer } from './lock-answers.js';
import { isGrpcMethod } from '../method-metadata.js';
import { createUnloggedError } from '../nest-10.js';

/** Returns `error` itself for a transport that is not Nest's. */
export async function toTransportException(
  error: LibraryError,
  answer: ErrorAnswer,
  host: ArgumentsHost,
  handler?: object,
): Promise<Error> {
  switch (host.getType<string>()) {
    case 'http':
      return toHttpException(error, answer);
    case 'graphql':
      return toGraphqlError(error, answer);
    case 'rpc': {
      const { RpcException } = await import('@nestjs/microservices');
      return addCause(new RpcException(toRpcBody(answer, handler)), error);
    }
    case 'ws': {
      const { WsException } = await import('@nestjs/websockets');
      const ws = host.switchToWs();
      // Nest's own exceptions have the same form, which tells the client the message that failed.
      const failedMessage = { pattern: ws.getPattern(), data: ws.getData<unknown>() };
      return addCause(new WsException({ ...toMessageBody(answer), cause: failedMessage }), error);
    }
    default:
      return error;
  }
}

export function toHttpException(error: LibraryError, { status, code, message }: ErrorAnswer): HttpException {
  return new HttpException({ statusCode: status, error: STATUS_CODES[status], code, message }, status, {
    cause: error,
  });
}

export function toGraphqlError(error: LibraryError, { status, code, message }: ErrorAnswer): Error {
  return Object.assign(createUnloggedError(message, status, error), { extensions: { code, http: { status } } });
}

/**
 * Replaces the message and the stack of `error` by ones that clients may see, for transports that show errors to
 * clients. Key and holder stay in the properties of `error`. Logs that inspect `error` still print the original
 * message.
 */
export function hideDetails(error: LibraryError): void {
  const { status, code, message } = getAnswer(error);
  // Source map support formats the stack at the first access, which must come before the message changes.
  const { stack = '' } = error;
  const framesStart = stack.indexOf('\n    at ');
  const safeStack = `${error.name}: ${message}${framesStart < 0 ? '' : stack.slice(framesStart)}`;
  Object.assign(error, { message, stack: safeStack, statusCode: status, extensions: { code, http: { status } } });
  if (!Object.hasOwn(error, inspect.custom)) Object.defineProperty(error, inspect.custom, { value: () => stack });
}

function toMessageBody({ code, message }: ErrorAnswer): { status: 'error'; code: string; message: string } {
  return { status: 'error', code, message };
}

export function toRpcBody(answer: ErrorAnswer, handler?: object): object {
  if (!handler || !isGrpcMethod(handler)) return toMessageBody(answer);
  return { code: answer.grpcStatus, message: answer.message, details: answer.message };
}

function addCause<Exception extends Error>(exception: Exception, cause: Error): Exception {
  Object.defineProperty(exception, 'cause', { value: cause, configurable: true, writable: true });
  return exception;
}
