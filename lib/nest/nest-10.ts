import * as common from '@nestjs/common';

export const IS_NEST_10 = !('IntrinsicException' in common);

/**
 * Whether Nest answers a route of events with 200 before its pipes and handler run, if the route has interceptors:
 * https://github.com/nestjs/nest/pull/16753. The value is also `true` for correct versions that lack `SseSignal`.
 */
export const ANSWERS_EVENTS_EARLY = !('SseSignal' in common);

/** Returns an error for resolvers to throw, of a class that Nest does not log. */
export function createUnloggedError(message: string, status: number, cause: Error): Error {
  return IS_NEST_10
    ? new common.HttpException(message, status, { cause })
    : new common.IntrinsicException(message, { cause });
}
