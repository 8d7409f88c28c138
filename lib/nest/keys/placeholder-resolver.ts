import type { ExecutionContext } from '@nestjs/common';
import { LockConfigurationError, quote } from '../../core/index.js';
import { type Declaration, isMethod, type Method } from '../../decorators/declaration.js';
import { unwrapMethod } from '../../decorators/wrapped-method.js';
import { type ArgumentNames, readArgumentNames, callsNameHelper } from './argument-names.js';
import { isDecoratedInTypeScript } from './decorating-file.js';
import type { KeyTemplate, PlaceholderPath } from './key-template.js';
import {
  isMessageHandler,
  mayBeHandler,
  getDecoratedParameterPositions,
  getParameterTypes,
  routeHasParameter,
  getRouteParameterPositions,
} from '../method-metadata.js';
import { getParameterMetadata } from './parameter-metadata.js';
import { isObject } from '../../decorators/is-object.js';
import { hasProperty, joinWildcard, readPath, readRequestValue, REQUEST_PARTS } from '../requests/request-values.js';

export type ValueReader = (args: readonly unknown[], context: ExecutionContext | undefined) => unknown;

/** Types that the compiler records for interfaces, unions and promises, which tell nothing about the value. */
const UNKNOWN_TYPES: ReadonlySet<unknown> = new Set([Object, Promise, Function]);
const PLAIN_TYPES: ReadonlySet<unknown> = new Set([String, Number, Boolean, BigInt, Symbol]);

/** Finds the values of placeholders by name, in the order that the comment of `Locked` lists. */
export class PlaceholderResolver {
  readonly #positions: ReadonlyMap<string, number | 'ambiguous'>;
  readonly #argumentNames: ArgumentNames;
  readonly #lockPositions: ReadonlySet<number>;
  readonly #routeParameterPositions: ReadonlySet<number>;
  readonly #parameterTypes: readonly unknown[] | undefined;

  constructor(
    declaration: Declaration,
    method: Method,
    private readonly methodLabel: string,
  ) {
    const { keyPositions, lockPositions } = getParameterMetadata(declaration);
    // Decorators below `@Locked` may have wrapped `method`. The class still has the original.
    const originalMethod: unknown = Object.getOwnPropertyDescriptor(declaration.target, declaration.name)?.value;
    const innermostMethod = unwrapMethod(isMethod(originalMethod) ? originalMethod : method);
    const classSource = Function.prototype.toString.call(declaration.target.constructor);
    const buildKeepsNames = (): boolean => callsNameHelper(classSource) || isDecoratedInTypeScript();
    this.#argumentNames = readArgumentNames(Function.prototype.toString.call(innermostMethod), buildKeepsNames);
    this.#lockPositions = lockPositions;
    this.#routeParameterPositions = getRouteParameterPositions(declaration);
    this.#parameterTypes = getParameterTypes(declaration);
    const argumentPositions = this.#argumentNames.names.flatMap((name, index): [string, number][] =>
      name ? [[name, index]] : [],
    );
    this.#positions = new Map([...argumentPositions, ...getDecoratedParameterPositions(declaration), ...keyPositions]);
  }

  /**
   * Returns the position of the argument that is the value, or a function that reads the value. The function returns
   * `undefined` when nothing has the name.
   */
  getValueSource([head, ...rest]: PlaceholderPath): number | ValueReader {
    const position = this.#positions.get(head);
    if (typeof position === 'number') {
      if (this.#routeParameterPositions.has(position)) return (args) => joinWildcard(readPath(args[position], rest));
      return rest.length === 0 ? position : (args) => readPath(args[position], rest);
    }
    return (args, context) => {
      const argument = this.#findOnlyObjectArgument(args);
      if (argument && hasProperty(argument, head)) return readPath(argument, [head, ...rest]);
      return context && readRequestValue(context, head, rest);
    };
  }

  /** @throws LockConfigurationError when literal text names an argument as other libraries do: `user.id`, `$id`, `<id>` */
  assertNoForeignPlaceholder({ source, leadingText, placeholders }: KeyTemplate): void {
    const texts = [leadingText, ...placeholders.map(({ textAfter }) => textAfter)];
    for (const name of this.#positions.keys()) {
      if (this.#mayBeMinified(name)) continue;
      const isPath = placeholders.length === 0 && leadingText.startsWith(`${name}.`);
      if (!isPath && !texts.some((text) => namesArgument(text, name))) continue;
      throw this.#createKeyError(
        `${quote(source)} is one key for all calls, though it names the argument "${name}". Write :${name} for its ` +
          'value, or a function for that literal text',
      );
    }
  }

  /** @throws LockConfigurationError when no call can ever have a value for the placeholder */
  assertResolvable(
    [head, ...rest]: PlaceholderPath,
    method: object,
    classRef: object,
    routePrefixes?: readonly string[],
  ): void {
    const position = this.#positions.get(head);
    if (position === 'ambiguous') {
      throw this.#createKeyError(
        `two parameters are called "${head}"; name the one that is meant by @LockKey('${head}')`,
      );
    }
    if (position !== undefined) {
      if (rest.length === 0) this.#assertPlainType(head, position);
      return;
    }
    if (REQUEST_PARTS.has(head) && rest.length > 0 && mayBeHandler(method)) return;
    if (rest.length === 0 && routeHasParameter(method, classRef, head, routePrefixes)) return;
    if (!this.#mayBeMinified(head) && (isMessageHandler(method) || this.#mayHaveObjectArgument())) return;
    throw this.#createKeyError(
      `:${[head, ...rest].join('.')} is a placeholder, and there is no @LockKey('${head}'), no parameter, argument or ` +
        `route parameter of that name. ${this.#getAdvice(head)}`,
    );
  }

  /** @throws LockConfigurationError when the argument's type cannot stand in a key, and has no `toJSON` */
  #assertPlainType(name: string, position: number): void {
    const type = this.#parameterTypes?.[position];
    if (typeof type !== 'function' || UNKNOWN_TYPES.has(type) || PLAIN_TYPES.has(type)) return;
    if (this.#routeParameterPositions.has(position) && type === Array) return;
    const prototype: unknown = type.prototype;
    if (isObject(prototype) && 'toJSON' in prototype) return;
    const typeLabel = type === Array ? 'an array' : `a ${type.name}`;
    throw this.#createKeyError(
      `:${name} is ${typeLabel}, which names no lock. Name one of its properties, as in :${name}.id`,
    );
  }

  #mayBeMinified(name: string): boolean {
    const { possiblyMinifiedNames, looksMinified } = this.#argumentNames;
    return possiblyMinifiedNames.has(name) || (looksMinified && !this.#parameterTypes);
  }

  #getAdvice(name: string): string {
    const { possiblyMinifiedNames, looksMinified } = this.#argumentNames;
    const remedy = `write @LockKey('${name}') before it`;
    if (looksMinified) return `This build looks minified, as by esbuild or terser, which renames arguments: ${remedy}`;
    if (possiblyMinifiedNames.has(name)) return `An argument of one letter may be named by a minifier: ${remedy}`;
    return `For a plain colon write "\\\\:${name}", before other letters ":{name}"`;
  }

  #createKeyError(reason: string): LockConfigurationError {
    return new LockConfigurationError(`${this.methodLabel}: ${reason}`, 'key');
  }

  /**
   * Returns the only object among the declared arguments, not counting lock handles; `undefined` for none or several.
   * Ignores undeclared arguments, because Nest may pass a response or a context after the declared ones.
   */
  #findOnlyObjectArgument(args: readonly unknown[]): object | undefined {
    const count = this.#argumentNames.hasRestParameter ? args.length : this.#declaredArgumentCount;
    const objects = args.slice(0, count).filter((arg, index) => isObject(arg) && !this.#lockPositions.has(index));
    const [object] = objects;
    return objects.length === 1 && isObject(object) ? object : undefined;
  }

  #mayHaveObjectArgument(): boolean {
    const positions = Array.from({ length: this.#declaredArgumentCount }, (_, index) => index);
    return (
      this.#argumentNames.hasRestParameter ||
      positions.some((index) => !this.#lockPositions.has(index) && !PLAIN_TYPES.has(this.#parameterTypes?.[index]))
    );
  }

  /** Number of parameters. A rest parameter counts only where the compiler wrote types. */
  get #declaredArgumentCount(): number {
    return Math.max(this.#argumentNames.names.length, this.#parameterTypes?.length ?? 0);
  }
}

/** Returns whether the name stands in the text behind a mark that begins a placeholder elsewhere. */
function namesArgument(text: string, name: string): boolean {
  const [, ...marked] = text.split(/[$#@%<[]/u);
  return marked.some((part) => part.startsWith(name) && !/^[\p{ID_Continue}$]/u.test(part.slice(name.length)));
}
