import * as common from '@nestjs/common';

/** Later versions of Nest export this class. */
export const IS_NEST_10 = !('IntrinsicException' in common);

/** Nest logs other errors of resolvers as unexpected ones. Nest 10 logs all of them. */
export const ExpectedError: new (message: string, options?: ErrorOptions) => Error = IS_NEST_10
  ? Error
  : common.IntrinsicException;
