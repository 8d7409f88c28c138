/** The methods that `@Fenced` and `@Optimistic` accept: their wrappers answer with a promise. */
export type PromiseMethod = (this: unknown, ...args: never[]) => Promise<unknown>;

/** Optional in type only, for `applyDecorators`; without a method it throws. */
export type PromiseMethodDecorator = <Method extends (...args: never[]) => Promise<unknown>>(
  target: object,
  name: string | symbol,
  descriptor?: TypedPropertyDescriptor<Method>,
) => void;

export function isPromiseMethod(value: unknown): value is PromiseMethod {
  return typeof value === 'function';
}
