import * as common from '@nestjs/common';

export const IS_NEST_10 = !('IntrinsicException' in common);

/**
 * Whether this version of Nest answers 200 to a route of events that has interceptors, before it runs pipes and handler:
 * https://github.com/nestjs/nest/pull/16753. Versions that correct this and lack `SseSignal` count, too.
 */
export const ANSWERS_EVENTS_EARLY = !('SseSignal' in common);

/** Returns an error for resolvers to throw, of a class that Nest does not log. */
export function createUnloggedError(message: string, status: number, cause: Error): Error {
  return IS_NEST_10
    ? new common.HttpException(message, status, { cause })
    : new common.IntrinsicException(message, { cause });
}
