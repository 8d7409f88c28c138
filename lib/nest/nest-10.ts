import * as common from '@nestjs/common';

/** Later versions of Nest export this class. */
export const IS_NEST_10 = !('IntrinsicException' in common);

/** Makes an error of a resolver that Nest does not log as an unexpected one. */
export function expectedError(message: string, status: number, cause: Error): Error {
  return IS_NEST_10
    ? new common.HttpException(message, status, { cause })
    : new common.IntrinsicException(message, { cause });
}
