import type { ExecutionContext } from '@nestjs/common';
import { LockConfigurationError } from '../core/index.js';
import { unwrapped } from '../core/wrapped-method.js';
import { type ArgumentNames, argumentNames } from './argument-names.js';
import type { Path } from './key-template.js';
import { type Declaration, mayBeHandler, namedParameters, parameterTypes, routeNames } from './method-metadata.js';
import { parameterNotes } from './parameter-notes.js';

const REQUEST_PARTS: ReadonlySet<string> = new Set(['params', 'query', 'body', 'user']);
const PLAIN_TYPES: ReadonlySet<unknown> = new Set([String, Number, Boolean, BigInt, Symbol]);

type Method = (...args: never[]) => unknown;

/**
 * What the names in a key mean for one method. In this order: `@LockKey('id')`; `@Param('id')` and its kin; the name of an
 * argument; a property of the only argument that is an object; a part of the request that the method handles.
 */
export class KeyNames {
  readonly #positions: ReadonlyMap<string, number | 'ambiguous'>;
  readonly #arguments: ArgumentNames;
  readonly #locks: ReadonlySet<number>;
  readonly #types: readonly unknown[] | undefined;

  constructor(
    declaration: Declaration,
    method: Method,
    private readonly owner: string,
  ) {
    const { keys, locks } = parameterNotes(declaration);
    this.#arguments = argumentNames(Function.prototype.toString.call(unwrapped(method)));
    this.#locks = locks;
    this.#types = parameterTypes(declaration);
    const positions = new Map<string, number | 'ambiguous'>();
    for (const [index, name] of this.#arguments.names.entries()) if (name !== undefined) positions.set(name, index);
    for (const [name, index] of namedParameters(declaration)) positions.set(name, index);
    for (const [name, index] of keys) positions.set(name, index);
    this.#positions = positions;
  }

  /** `undefined` when nothing of that name is there. */
  value([head, ...rest]: Path, args: readonly unknown[], context: ExecutionContext | undefined): unknown {
    const position = this.#positions.get(head);
    if (typeof position === 'number') return walk(args[position], rest);
    const only = this.#onlyObject(args);
    if (only && Object.hasOwn(only, head)) return walk(only, [head, ...rest]);
    return context && fromRequest(context, head, rest);
  }

  /**
   * Refuses a name that can mean nothing, whatever the method is called with.
   * @throws LockConfigurationError that says what could have been meant
   */
  assertResolvable([head, ...rest]: Path, method: object, controller: object): void {
    const position = this.#positions.get(head);
    if (position === 'ambiguous') {
      throw this.#refused(`two parameters are called "${head}"; name the one that is meant by @LockKey('${head}')`);
    }
    if (position !== undefined || this.#mayHaveObject()) return;
    if (REQUEST_PARTS.has(head) && rest.length > 0 && mayBeHandler(method)) return;
    if (rest.length === 0 && routeNames(method, controller, head)) return;
    throw this.#refused(
      `:${[head, ...rest].join('.')} is a placeholder, and there is no @LockKey('${head}'), no parameter, argument or ` +
        `route parameter of that name. For a plain colon write "\\\\:${head}", before other letters ":{name}"`,
    );
  }

  #refused(why: string): LockConfigurationError {
    return new LockConfigurationError(`${this.owner}: ${why}`, 'key');
  }

  /** Nest passes more arguments than a handler declares: the response, a context. */
  #onlyObject(args: readonly unknown[]): object | undefined {
    const declared = this.#arguments.rest ? args.length : this.#declared;
    const candidates = args.slice(0, declared).filter((_, index) => !this.#locks.has(index));
    const objects = candidates.filter(isObject);
    return objects.length === 1 ? objects[0] : undefined;
  }

  #mayHaveObject(): boolean {
    const positions = Array.from({ length: this.#declared }, (_, index) => index);
    return this.#arguments.rest || positions.some((at) => !this.#locks.has(at) && !PLAIN_TYPES.has(this.#types?.[at]));
  }

  get #declared(): number {
    return Math.max(this.#arguments.names.length, this.#types?.length ?? 0);
  }
}

function fromRequest(context: ExecutionContext, head: string, rest: readonly string[]): unknown {
  const request = requestOf(context);
  if (request === undefined) return undefined;
  if (rest.length === 0) return walk(request['params'], [head]);
  return REQUEST_PARTS.has(head) ? walk(request[head], rest) : undefined;
}

function requestOf(context: ExecutionContext): Record<string, unknown> | undefined {
  switch (context.getType<string>()) {
    case 'http':
      return context.switchToHttp().getRequest<Record<string, unknown>>();
    case 'graphql':
      return context.getArgByIndex<{ req?: Record<string, unknown> } | undefined>(2)?.req;
    default:
      return undefined;
  }
}

/** Own properties only: what a client sends never reaches a prototype. */
function walk(from: unknown, path: readonly string[]): unknown {
  let value = from;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = Reflect.get(value, name);
  }
  return value;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
