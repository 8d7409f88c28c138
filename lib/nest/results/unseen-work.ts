import { types } from 'node:util';
import { LockConfigurationError } from '../../core/index.js';
import { isObject } from '../../decorators/is-object.js';
import { getInterceptors } from '../method-metadata.js';

/** Interceptors of ts-rest and oRPC, which run what the handler returned. */
const RUNS_RESULT = new Set(['TsRestHandlerInterceptor', 'ImplementInterceptor']);

/**
 * Returns what a result is whose work would run after the release, and `undefined` for a value. An object of an
 * application with methods, such as an entity or a client, is a value, and so is a function.
 */
export function describeUnseenWork(result: object): string | undefined {
  if (result instanceof ReadableStream) return 'a stream of the web';
  if (result instanceof Response) return 'a Response';
  if (Symbol.asyncIterator in result) return 'an async iterable';
  if (types.isGeneratorObject(result)) return 'a synchronous generator';
  if (['closed', 'add', 'unsubscribe'].every((name) => name in result)) return 'a subscription';
  return undefined;
}

/**
 * The same for the result of a handler, which its transport works through. A plain object is work if it has functions, as
 * handlers of contracts return them, or promises, getters or iterators.
 */
export function describeUnseenWorkOfHandler(result: object): string | undefined {
  if (typeof result === 'function') return 'a function';
  const prototype: unknown = Object.getPrototypeOf(result);
  if (prototype !== null && prototype !== Object.prototype) return undefined;
  const fields = Object.entries(Object.getOwnPropertyDescriptors(result));
  const field = fields.find(([, property]) => property.get !== undefined || isWork(property.value));
  return field && `an object whose field ${field[0]} is work`;
}

function isWork(value: unknown): boolean {
  if (typeof value === 'function' || types.isPromise(value)) return true;
  return isObject(value) && ('then' in value || describeUnseenWork(value) !== undefined);
}

/** @throws LockConfigurationError for a handler of ts-rest or oRPC, whose interceptor runs what it returns */
export function assertRunsItself(method: object, label: string): void {
  const runner = getInterceptors(method).find((one) => typeof one === 'function' && RUNS_RESULT.has(one.name));
  if (runner === undefined) return;
  throw new LockConfigurationError(
    `${label} returns what its interceptor runs after the release. Put @Locked on the service that it calls, or call ` +
      'withLock inside of what it returns',
    'returns',
  );
}
