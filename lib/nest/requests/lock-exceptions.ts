import { type ArgumentsHost, HttpException } from '@nestjs/common';
import { STATUS_CODES } from 'node:http';
import { inspect } from 'node:util';
import { type Answer, type AnsweredError, answerTo } from './lock-answers.js';
import { isGrpcMethod } from '../method-metadata.js';
import { createUnloggedError } from '../nest-10.js';

/**
 * Returns the exception that filters of the transport know, with `error` as its `cause`, or `error` itself for a
 * transport of another library.
 */
export async function toTransportException(
  error: AnsweredError,
  answer: Answer,
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
      return withCause(new RpcException(rpcBody(answer, handler)), error);
    }
    case 'ws': {
      const { WsException } = await import('@nestjs/websockets');
      const ws = host.switchToWs();
      // In the shape of Nest's own answers, with the message that failed.
      const cause = { pattern: ws.getPattern(), data: ws.getData<unknown>() };
      return withCause(new WsException({ ...messageBody(answer), cause }), error);
    }
    default:
      return error;
  }
}

export function toHttpException(error: AnsweredError, { status, code, message }: Answer): HttpException {
  return new HttpException({ statusCode: status, error: STATUS_CODES[status], code, message }, status, {
    cause: error,
  });
}

export function toGraphqlError(error: AnsweredError, { status, code, message }: Answer): Error {
  return Object.assign(createUnloggedError(message, status, error), { extensions: { code, http: { status } } });
}

/**
 * Makes `error` itself safe to show to clients, for transports that print what leaves a method, perhaps with its stack.
 * Key and holder stay in its properties, and logs that inspect it still have the first message.
 */
export function hideDetails(error: AnsweredError): void {
  const { status, code, message } = answerTo(error);
  // Where a source map formats it, the first access fixes its text.
  const { stack = '' } = error;
  const calls = stack.indexOf('\n    at ');
  const safeStack = `${error.name}: ${message}${calls < 0 ? '' : stack.slice(calls)}`;
  Object.assign(error, { message, stack: safeStack, statusCode: status, extensions: { code, http: { status } } });
  if (!Object.hasOwn(error, inspect.custom)) Object.defineProperty(error, inspect.custom, { value: () => stack });
}

function messageBody({ code, message }: Answer): { status: 'error'; code: string; message: string } {
  return { status: 'error', code, message };
}

export function rpcBody(answer: Answer, handler?: object): object {
  if (!handler || !isGrpcMethod(handler)) return messageBody(answer);
  return { code: answer.grpcStatus, message: answer.message, details: answer.message };
}

function withCause<Exception extends Error>(exception: Exception, cause: Error): Exception {
  Object.defineProperty(exception, 'cause', { value: cause, configurable: true, writable: true });
  return exception;
}
