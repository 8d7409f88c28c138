import type { ExecutionContext } from '@nestjs/common';
import { LockConfigurationError } from '../../core/index.js';
import { type Declaration, isMethod, type Method } from '../../decorators/declaration.js';
import { unwrapped } from '../../decorators/wrapped-method.js';
import { type ArgumentNames, argumentNames, showsKeptNames } from './argument-names.js';
import { isDecoratedInTypeScript } from './decorating-file.js';
import type { Path } from './key-template.js';
import {
  isMessageHandler,
  mayBeHandler,
  namedParameters,
  parameterTypes,
  routeHas,
  routeParameters,
} from '../method-metadata.js';
import { parameterMetadata } from './parameter-metadata.js';
import { isObject } from '../../decorators/is-object.js';
import { fromRequest, hasProperty, REQUEST_PARTS, routeParameter, walk } from '../requests/request-values.js';

/** The context is that of the request that the call handles. */
export type ReadValue = (args: readonly unknown[], context: ExecutionContext | undefined) => unknown;

/** Types that say nothing: the compiler writes them for interfaces, unions and promises. */
const UNKNOWN_TYPES: ReadonlySet<unknown> = new Set([Object, Promise, Function]);
const PLAIN_TYPES: ReadonlySet<unknown> = new Set([String, Number, Boolean, BigInt, Symbol]);

/**
 * Finds the values of the names in a key, in this order: `@LockKey('id')`; `@Param('id')` and its like; the name of an
 * argument; a property of the only argument that is an object; a part of the request that the method handles.
 */
export class KeyNames {
  readonly #positions: ReadonlyMap<string, number | 'ambiguous'>;
  readonly #arguments: ArgumentNames;
  readonly #locks: ReadonlySet<number>;
  readonly #routeParameters: ReadonlySet<number>;
  readonly #types: readonly unknown[] | undefined;

  constructor(
    declaration: Declaration,
    method: Method,
    private readonly owner: string,
  ) {
    const { keys, locks } = parameterMetadata(declaration);
    // The class may still have the method that a decorator below has wrapped by now.
    const declared: unknown = Object.getOwnPropertyDescriptor(declaration.target, declaration.name)?.value;
    const source = unwrapped(isMethod(declared) ? declared : method);
    const ofClass = Function.prototype.toString.call(declaration.target.constructor);
    const keepsNames = (): boolean => showsKeptNames(ofClass) || isDecoratedInTypeScript();
    this.#arguments = argumentNames(Function.prototype.toString.call(source), keepsNames);
    this.#locks = locks;
    this.#routeParameters = routeParameters(declaration);
    this.#types = parameterTypes(declaration);
    const named = this.#arguments.names.flatMap((name, index): [string, number][] => (name ? [[name, index]] : []));
    this.#positions = new Map([...named, ...namedParameters(declaration), ...keys]);
  }

  /** The argument that is the value of a name, or how else a call finds it: `undefined` when nothing has the name. */
  reader([head, ...rest]: Path): number | ReadValue {
    const position = this.#positions.get(head);
    if (typeof position === 'number') {
      if (this.#routeParameters.has(position)) return (args) => routeParameter(walk(args[position], rest));
      return rest.length === 0 ? position : (args) => walk(args[position], rest);
    }
    return (args, context) => {
      const only = this.#onlyObject(args);
      if (only && hasProperty(only, head)) return walk(only, [head, ...rest]);
      return context && fromRequest(context, head, rest);
    };
  }

  /** @throws LockConfigurationError when no call can ever have a value for the name */
  assertResolvable([head, ...rest]: Path, method: object, controller: object, prefixes?: readonly string[]): void {
    const position = this.#positions.get(head);
    if (position === 'ambiguous') {
      throw this.#refused(`two parameters are called "${head}"; name the one that is meant by @LockKey('${head}')`);
    }
    if (position !== undefined) return rest.length === 0 ? this.#assertPlain(head, position) : undefined;
    if (REQUEST_PARTS.has(head) && rest.length > 0 && mayBeHandler(method)) return;
    if (rest.length === 0 && routeHas(method, controller, head, prefixes)) return;
    if (!this.#isDoubtful(head) && (isMessageHandler(method) || this.#mayHaveObject())) return;
    throw this.#refused(
      `:${[head, ...rest].join('.')} is a placeholder, and there is no @LockKey('${head}'), no parameter, argument or ` +
        `route parameter of that name. ${this.#advice(head)}`,
    );
  }

  /** An instance is no value for a key, unless its class has one for JSON. */
  #assertPlain(name: string, position: number): void {
    const type = this.#types?.[position];
    if (typeof type !== 'function' || UNKNOWN_TYPES.has(type) || PLAIN_TYPES.has(type)) return;
    if (this.#routeParameters.has(position) && type === Array) return;
    const prototype: unknown = type.prototype;
    if (isObject(prototype) && 'toJSON' in prototype) return;
    const what = type === Array ? 'an array' : `a ${type.name}`;
    throw this.#refused(`:${name} is ${what}, which names no lock. Name one of its properties, as in :${name}.id`);
  }

  /** A minified method without the types of its arguments says nothing about them. */
  #isDoubtful(name: string): boolean {
    const { doubtful, looksMinified } = this.#arguments;
    return doubtful.has(name) || (looksMinified && !this.#types);
  }

  #advice(name: string): string {
    const { doubtful, looksMinified } = this.#arguments;
    const explicit = `write @LockKey('${name}') before it`;
    if (looksMinified)
      return `This build looks minified, as by esbuild or terser, which renames arguments: ${explicit}`;
    if (doubtful.has(name)) return `An argument of one letter may be named by a minifier: ${explicit}`;
    return `For a plain colon write "\\\\:${name}", before other letters ":{name}"`;
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
