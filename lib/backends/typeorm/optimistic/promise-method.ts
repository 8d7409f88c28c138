/**
 * For methods whose wrappers answer with a promise. The descriptor is optional in type only, for `applyDecorators`;
 * without a method the decorator throws.
 */
export type PromiseMethodDecorator = <Method extends (...args: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor?: TypedPropertyDescriptor<Method>,
) => void;
