import * as common from '@nestjs/common';

export const IS_NEST_10 = !('IntrinsicException' in common);

/** Returns an error for resolvers to throw, of a class that Nest does not log. */
export function createUnloggedError(message: string, status: number, cause: Error): Error {
  return IS_NEST_10
    ? new common.HttpException(message, status, { cause })
    : new common.IntrinsicException(message, { cause });
}
