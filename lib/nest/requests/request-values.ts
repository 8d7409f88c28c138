import type { ExecutionContext } from '@nestjs/common';
import { isObject } from '../../decorators/is-object.js';

/** Parts of a request that the path of a placeholder may begin with. `data` is the data of a message. */
export const REQUEST_PARTS: ReadonlySet<string> = new Set(['params', 'query', 'body', 'user', 'data']);

/**
 * Reads the value of a placeholder from the request. Over HTTP and GraphQL, `:id` is a route parameter, and `:body.id`
 * a property of a part of the request. In a message, `:id` and `:data.id` are the same property.
 */
export function readRequestValue(context: ExecutionContext, head: string, restOfPath: readonly string[]): unknown {
  switch (context.getType<string>()) {
    case 'http':
      return readHttpValue(context.switchToHttp().getRequest(), head, restOfPath);
    case 'graphql':
      return readHttpValue(context.getArgByIndex<{ req?: unknown } | undefined>(2)?.req, head, restOfPath);
    case 'ws':
      return readMessageValue(context.switchToWs().getData(), head, restOfPath);
    case 'rpc':
      return readMessageValue(context.switchToRpc().getData(), head, restOfPath);
    default:
      return undefined;
  }
}

function readHttpValue(request: unknown, head: string, restOfPath: readonly string[]): unknown {
  if (!isObject(request)) return undefined;
  if (restOfPath.length === 0) return joinWildcard(readPath(Reflect.get(request, 'params'), [head]));
  const value = REQUEST_PARTS.has(head) ? readPath(Reflect.get(request, head), restOfPath) : undefined;
  return head === 'params' ? joinWildcard(value) : value;
}

/** Returns the path that a wildcard matched, which Express 5 splits into segments. Returns other values as they are. */
export function joinWildcard(value: unknown): unknown {
  return Array.isArray(value) ? value.join('/') : value;
}

function readMessageValue(data: unknown, head: string, restOfPath: readonly string[]): unknown {
  return head === 'data' && restOfPath.length > 0 ? readPath(data, restOfPath) : readPath(data, [head, ...restOfPath]);
}

export function readPath(root: unknown, path: readonly string[]): unknown {
  let value = root;
  for (const name of path) {
    if (!isObject(value) || !hasProperty(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

/**
 * Returns whether `value` has an own property, or a getter of its class. Clients must not reach methods of prototypes.
 */
export function hasProperty(value: object, name: string): boolean {
  if (Object.hasOwn(value, name)) return true;
  for (let proto = getPrototype(value); proto && getPrototype(proto); proto = getPrototype(proto)) {
    const property = Object.getOwnPropertyDescriptor(proto, name);
    if (property) return property.get !== undefined;
  }
  return false;
}

/** Returns `null` for `Object.prototype`, the last of the chain. */
function getPrototype(value: object): object | null {
  return Object.getPrototypeOf(value);
}
