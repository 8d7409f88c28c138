import 'reflect-metadata';
import type { Declaration } from '../decorators/declaration.js';
import { isObject } from '../decorators/is-object.js';

/** Metadata keys of Nest and its packages, copied because not all of these packages need to be installed. */
const PARAMETERS_KEY = '__routeArguments__';
const CUSTOM_PARAMETER_KEY_PART = '__customRouteArgs__';
/** Prefix of a parameter's key: `RouteParamtypes.RESPONSE` of `@nestjs/common`. */
const RESPONSE_PREFIX = '1:';
/** Prefix of a parameter's key: `RouteParamtypes.PARAM`. */
const ROUTE_PARAMETER_PREFIX = '5:';
const SSE_KEY = '__sse__';
const ROUTE_PATH_KEY = 'path';
const HTTP_METHOD_KEY = 'method';
const MESSAGE_KEYS = ['message', 'microservices:pattern'] as const;
const FIELD_RESOLVER_KEY = 'graphql:resolve_property';
const RESOLVER_KEYS = ['graphql:resolver_type', FIELD_RESOLVER_KEY] as const;
const TRANSPORT_KEY = 'microservices:transport';
/** Value of `Transport.GRPC` in `@nestjs/microservices`. */
const GRPC_TRANSPORT = 4;
const HANDLER_TYPE_KEY = 'microservices:handler_type';
/** Value of `PatternHandler.EVENT` in `@nestjs/microservices`. */
const EVENT_HANDLER_TYPE = 2;
const INTERCEPTORS_KEY = '__interceptors__';
const FILTERS_KEY = '__exceptionFilters__';
const CAUGHT_TYPES_KEY = '__filterCatchExceptions__';
const DECLARATION_KEY = Symbol.for('nestjs-distributed-lock/declaration with @Locked');
/** Keys of enhancers and of `@Locked`, which methods that are no handlers may have, too. */
const NON_HANDLER_KEYS: ReadonlySet<unknown> = new Set([
  INTERCEPTORS_KEY,
  '__guards__',
  '__pipes__',
  FILTERS_KEY,
  DECLARATION_KEY,
]);

export function getRouteParameterPositions(declaration: Declaration): ReadonlySet<number> {
  const parameters = getDecoratedParameters(declaration).filter(([key]) => key.startsWith(ROUTE_PARAMETER_PREFIX));
  return new Set(parameters.map(([, { index }]) => index));
}

/**
 * Returns the positions of parameters by the names in `@Param('id')`, `@Body('id')`, `@Payload('id')`, `@Args('id')`.
 */
export function getDecoratedParameterPositions(declaration: Declaration): ReadonlyMap<string, number | 'ambiguous'> {
  const positions = new Map<string, number | 'ambiguous'>();
  for (const [key, { index, data }] of getDecoratedParameters(declaration)) {
    if (key.includes(CUSTOM_PARAMETER_KEY_PART) || typeof data !== 'string' || data === '') continue;
    positions.set(data, positions.has(data) ? 'ambiguous' : index);
  }
  return positions;
}

interface DecoratedParameter {
  readonly index: number;
  readonly data?: unknown;
}

function getDecoratedParameters({
  target,
  name,
}: Declaration): readonly [key: string, parameter: DecoratedParameter][] {
  const parameters: unknown = Reflect.getMetadata(PARAMETERS_KEY, target.constructor, name);
  return Object.entries(parameters ?? {}).flatMap(([key, value]: [string, unknown]) =>
    isDecoratedParameter(value) ? [[key, value] as const] : [],
  );
}

function isDecoratedParameter(value: unknown): value is DecoratedParameter {
  return isObject(value) && 'index' in value && typeof value.index === 'number';
}

/** Returns whether a parameter has `@Res()` without `passthrough`: the method then writes the response itself. */
export function hasResponseParameter(declaration: Declaration): boolean {
  return getDecoratedParameters(declaration).some(([key, { data }]) => {
    const isPassthrough = isObject(data) && 'passthrough' in data && data.passthrough === true;
    return key.startsWith(RESPONSE_PREFIX) && !isPassthrough;
  });
}

/** Returns `undefined` without `emitDecoratorMetadata`. */
export function getParameterTypes({ target, name }: Declaration): readonly unknown[] | undefined {
  const types: unknown = Reflect.getMetadata('design:paramtypes', target, name);
  return Array.isArray(types) ? types : undefined;
}

/** Recognizes `Observable` of any copy of rxjs as the return type. Returns `false` without `emitDecoratorMetadata`. */
export function returnsObservable({ target, name }: Declaration): boolean {
  const type: unknown = Reflect.getMetadata('design:returntype', target, name);
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined;
  return isObject(prototype) && 'subscribe' in prototype && 'lift' in prototype;
}

export function isEventStream(method: object): boolean {
  return Reflect.getMetadata(SSE_KEY, method) === true;
}

export function mayBeHandler(method: object): boolean {
  return Reflect.getMetadataKeys(method).some((key: unknown) => !NON_HANDLER_KEYS.has(key));
}

export function isMessageHandler(method: object): boolean {
  return MESSAGE_KEYS.some((key) => Reflect.hasMetadata(key, method));
}

export function isEventHandler(method: object): boolean {
  return Reflect.getMetadata(HANDLER_TYPE_KEY, method) === EVENT_HANDLER_TYPE;
}

export function isGrpcMethod(method: object): boolean {
  return Reflect.getMetadata(TRANSPORT_KEY, method) === GRPC_TRANSPORT;
}

export function isResolver(method: object): boolean {
  return RESOLVER_KEYS.some((key) => Reflect.hasMetadata(key, method));
}

export function isFieldResolver(method: object): boolean {
  return Reflect.hasMetadata(FIELD_RESOLVER_KEY, method);
}

export function isHttpHandler(method: object): boolean {
  return Reflect.hasMetadata(HTTP_METHOD_KEY, method);
}

export function isNonHttpHandler(method: object): boolean {
  return isMessageHandler(method) || isResolver(method);
}

export function routeHasParameter(
  method: object,
  controller: object,
  name: string,
  routePrefixes: readonly string[] = [],
): boolean {
  const route: unknown = Reflect.getMetadata(ROUTE_PATH_KEY, method);
  if (route === undefined) return false;
  const paths: unknown[] = [route, Reflect.getMetadata(ROUTE_PATH_KEY, controller), ...routePrefixes];
  return paths
    .flat()
    .filter((path) => typeof path === 'string')
    .flatMap((path) => [...path.matchAll(/[:*](?<name>[\p{ID_Continue}$]+)/gu)])
    .some((match) => match.groups?.['name'] === name);
}

/** Puts the interceptor before all other interceptors of a class or method. */
export function addFirstInterceptor(target: object, interceptor: unknown): void {
  const others = getInterceptors(target).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS_KEY, [interceptor, ...others], target);
}

export function addLastInterceptor(method: object, interceptor: unknown): void {
  const others = getInterceptors(method).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS_KEY, [...others, interceptor], method);
}

export function removeInterceptor(target: object, interceptor: unknown): void {
  const others = getInterceptors(target).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS_KEY, others, target);
}

export function getInterceptors(target: object): readonly unknown[] {
  const interceptors: unknown = Reflect.getMetadata(INTERCEPTORS_KEY, target);
  return Array.isArray(interceptors) ? interceptors : [];
}

export function getFilters(target: object): readonly unknown[] {
  const filters: unknown = Reflect.getMetadata(FILTERS_KEY, target);
  return Array.isArray(filters) ? filters : [];
}

export function getCaughtTypes(filter: unknown): readonly (abstract new (...args: never[]) => unknown)[] {
  const classRef: unknown = isObject(filter) ? filter.constructor : filter;
  const types: unknown = typeof classRef === 'function' ? Reflect.getMetadata(CAUGHT_TYPES_KEY, classRef) : undefined;
  return Array.isArray(types) ? types : [];
}

/** Records the declaration of a locked method in its metadata, which wrappers of other libraries copy. */
export function setDeclaration(declaration: Declaration, method: object): void {
  Reflect.defineMetadata(DECLARATION_KEY, declaration, method);
}

export function getDeclaration(method: object): unknown {
  return Reflect.getMetadata(DECLARATION_KEY, method);
}
