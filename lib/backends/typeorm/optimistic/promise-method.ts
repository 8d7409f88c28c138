/**
 * Type of a decorator that replaces a method which returns a promise. `descriptor` is optional only because Nest's
 * `applyDecorators` types it so: without a method the decorator throws.
 */
export type PromiseMethodDecorator = <Method extends (...args: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor?: TypedPropertyDescriptor<Method>,
) => void;
