import type { ExecutionContext } from '@nestjs/common';
import { isObject } from '../../decorators/is-object.js';

/** The parts of a request that a placeholder may name, with a path behind it; `data` is that of a message. */
export const REQUEST_PARTS: ReadonlySet<string> = new Set(['params', 'query', 'body', 'user', 'data']);

/** A part of the request, or by its bare name a route parameter or a property of the message. */
export function fromRequest(context: ExecutionContext, head: string, rest: readonly string[]): unknown {
  switch (context.getType<string>()) {
    case 'http':
      return fromHttp(context.switchToHttp().getRequest(), head, rest);
    case 'graphql':
      return fromHttp(context.getArgByIndex<{ req?: unknown } | undefined>(2)?.req, head, rest);
    case 'ws':
      return fromMessage(context.switchToWs().getData(), head, rest);
    case 'rpc':
      return fromMessage(context.switchToRpc().getData(), head, rest);
    default:
      return undefined;
  }
}

function fromHttp(request: unknown, head: string, rest: readonly string[]): unknown {
  if (!isObject(request)) return undefined;
  if (rest.length === 0) return routeParameter(walk(Reflect.get(request, 'params'), [head]));
  const value = REQUEST_PARTS.has(head) ? walk(Reflect.get(request, head), rest) : undefined;
  return head === 'params' ? routeParameter(value) : value;
}

/** The value of a wildcard is a path, also where Express 5 has it in segments. */
export function routeParameter(value: unknown): unknown {
  return Array.isArray(value) ? value.join('/') : value;
}

function fromMessage(data: unknown, head: string, rest: readonly string[]): unknown {
  return head === 'data' && rest.length > 0 ? walk(data, rest) : walk(data, [head, ...rest]);
}

/** `undefined` where a step of the path is no property. */
export function walk(from: unknown, path: readonly string[]): unknown {
  let value = from;
  for (const name of path) {
    if (!isObject(value) || !hasProperty(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/** Own properties, and the getters of classes. Clients could name other things of a prototype. */
export function hasProperty(value: object, name: string): boolean {
  if (Object.hasOwn(value, name)) return true;
  for (let at = prototypeOf(value); at && prototypeOf(at); at = prototypeOf(at)) {
    const property = Object.getOwnPropertyDescriptor(at, name);
    if (property) return property.get !== undefined;
  }
  return false;
}

/** The last one, `Object.prototype`, has none. */
function prototypeOf(value: object): object | null {
  return Object.getPrototypeOf(value);
}
