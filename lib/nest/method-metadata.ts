import 'reflect-metadata';
import type { Declaration } from '../decorators/declaration.js';
import { isObject } from '../decorators/is-object.js';

/** Keys of the metadata by which Nest and its packages describe a handler. The packages themselves are not imported. */
const PARAMETERS = '__routeArguments__';
const CUSTOM_PARAMETER_MARK = '__customRouteArgs__';
/** Prefix of a parameter's key: `RouteParamtypes.RESPONSE` of `@nestjs/common`. */
const RESPONSE_PREFIX = '1:';
/** Prefix of a parameter's key: `RouteParamtypes.PARAM`. */
const ROUTE_PARAMETER_PREFIX = '5:';
const SSE = '__sse__';
const ROUTE_PATH = 'path';
const HTTP_METHOD = 'method';
const MESSAGE_KEYS = ['message', 'microservices:pattern'] as const;
const FIELD_RESOLVER = 'graphql:resolve_property';
const RESOLVER_KEYS = ['graphql:resolver_type', FIELD_RESOLVER] as const;
const TRANSPORT = 'microservices:transport';
/** Value of `Transport.GRPC` in `@nestjs/microservices`. */
const GRPC = 4;
const HANDLER_TYPE = 'microservices:handler_type';
/** Value of `PatternHandler.EVENT` in `@nestjs/microservices`. */
const EVENT_HANDLER = 2;
const INTERCEPTORS = '__interceptors__';
const FILTERS = '__exceptionFilters__';
const CAUGHT_TYPES = '__filterCatchExceptions__';
const DECLARATION = Symbol.for('nestjs-distributed-lock/declaration with @Locked');
/** Keys that say nothing about whether a method is a handler: enhancers and `@Locked` stand on other methods, too. */
const NON_HANDLER_KEYS: ReadonlySet<unknown> = new Set([INTERCEPTORS, '__guards__', '__pipes__', FILTERS, DECLARATION]);

/** Returns the positions of the parameters that have `@Param`. */
export function getRouteParameterPositions(declaration: Declaration): ReadonlySet<number> {
  const parameters = getDecoratedParameters(declaration).filter(([key]) => key.startsWith(ROUTE_PARAMETER_PREFIX));
  return new Set(parameters.map(([, { index }]) => index));
}

/** Returns the positions of parameters by the names in `@Param('id')`, `@Body('id')`, `@Payload('id')`, `@Args('id')`. */
export function getDecoratedParameterPositions(declaration: Declaration): ReadonlyMap<string, number | 'ambiguous'> {
  const positions = new Map<string, number | 'ambiguous'>();
  for (const [key, { index, data }] of getDecoratedParameters(declaration)) {
    if (key.includes(CUSTOM_PARAMETER_MARK) || typeof data !== 'string' || data === '') continue;
    positions.set(data, positions.has(data) ? 'ambiguous' : index);
  }
  return positions;
}

interface DecoratedParameter {
  readonly index: number;
  /** Argument of the parameter's decorator. */
  readonly data?: unknown;
}

/** Returns the decorated parameters of a method, each with the metadata key that tells its decorator. */
function getDecoratedParameters({
  target,
  name,
}: Declaration): readonly [key: string, parameter: DecoratedParameter][] {
  const parameters: unknown = Reflect.getMetadata(PARAMETERS, target.constructor, name);
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

/** Returns the types of the method's parameters, if the compiler emitted them (`emitDecoratorMetadata`). */
export function getParameterTypes({ target, name }: Declaration): readonly unknown[] | undefined {
  const types: unknown = Reflect.getMetadata('design:paramtypes', target, name);
  return Array.isArray(types) ? types : undefined;
}

/** Returns whether the compiler emitted an Observable as the method's return type, of any copy of rxjs. */
export function returnsObservable({ target, name }: Declaration): boolean {
  const type: unknown = Reflect.getMetadata('design:returntype', target, name);
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined;
  return isObject(prototype) && 'subscribe' in prototype && 'lift' in prototype;
}

export function isEventStream(method: object): boolean {
  return Reflect.getMetadata(SSE, method) === true;
}

/** Returns whether Nest or another library may call `method` to handle a request. */
export function mayBeHandler(method: object): boolean {
  return Reflect.getMetadataKeys(method).some((key: unknown) => !NON_HANDLER_KEYS.has(key));
}

/** Returns whether `method` answers messages of a gateway or a microservice. */
export function isMessageHandler(method: object): boolean {
  return MESSAGE_KEYS.some((key) => Reflect.hasMetadata(key, method));
}

/** Returns whether `method` handles events: their senders wait for no answer. */
export function isEventHandler(method: object): boolean {
  return Reflect.getMetadata(HANDLER_TYPE, method) === EVENT_HANDLER;
}

export function isGrpcMethod(method: object): boolean {
  return Reflect.getMetadata(TRANSPORT, method) === GRPC;
}

/** Returns whether `method` resolves a query, a mutation, a subscription or a field of GraphQL. */
export function isResolver(method: object): boolean {
  return RESOLVER_KEYS.some((key) => Reflect.hasMetadata(key, method));
}

/** Returns whether `method` resolves a field of a GraphQL object. */
export function isFieldResolver(method: object): boolean {
  return Reflect.hasMetadata(FIELD_RESOLVER, method);
}

/** Returns whether `method` answers HTTP requests. */
export function isHttpHandler(method: object): boolean {
  return Reflect.hasMetadata(HTTP_METHOD, method);
}

/** Returns whether Nest calls `method` for another transport than HTTP. */
export function isNonHttpHandler(method: object): boolean {
  return isMessageHandler(method) || isResolver(method);
}

/** Returns whether the route of `method`, of its controller, or one of the prefixes has the parameter `name`. */
export function routeHasParameter(
  method: object,
  controller: object,
  name: string,
  routePrefixes: readonly string[] = [],
): boolean {
  const route: unknown = Reflect.getMetadata(ROUTE_PATH, method);
  if (route === undefined) return false;
  const paths: unknown[] = [route, Reflect.getMetadata(ROUTE_PATH, controller), ...routePrefixes];
  return paths
    .flat()
    .filter((path) => typeof path === 'string')
    .flatMap((path) => [...path.matchAll(/[:*](?<name>[\p{ID_Continue}$]+)/gu)])
    .some((match) => match.groups?.['name'] === name);
}

/** Puts `interceptor` before all others of a class. Nest runs them before the interceptors of its methods. */
export function addFirstInterceptor(classRef: object, interceptor: unknown): void {
  const others = getInterceptors(classRef).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS, [interceptor, ...others], classRef);
}

/** Puts `interceptor` after all others of `method`: it runs directly before the method. */
export function addLastInterceptor(method: object, interceptor: unknown): void {
  const others = getInterceptors(method).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS, [...others, interceptor], method);
}

function getInterceptors(target: object): readonly unknown[] {
  const interceptors: unknown = Reflect.getMetadata(INTERCEPTORS, target);
  return Array.isArray(interceptors) ? interceptors : [];
}

/** Returns the filters, or their classes, in `@UseFilters` of a class or a method. */
export function getFilters(target: object): readonly unknown[] {
  const filters: unknown = Reflect.getMetadata(FILTERS, target);
  return Array.isArray(filters) ? filters : [];
}

/** Returns the error classes in `@Catch` of a filter, or of a filter's class. */
export function getCaughtTypes(filter: unknown): readonly (abstract new (...args: never[]) => unknown)[] {
  const classRef: unknown = isObject(filter) ? filter.constructor : filter;
  const types: unknown = typeof classRef === 'function' ? Reflect.getMetadata(CAUGHT_TYPES, classRef) : undefined;
  return Array.isArray(types) ? types : [];
}

/** Records the declaration of a locked method in its metadata, which wrappers of other libraries copy. */
export function setDeclaration(declaration: Declaration, method: object): void {
  Reflect.defineMetadata(DECLARATION, declaration, method);
}

export function getDeclaration(method: object): unknown {
  return Reflect.getMetadata(DECLARATION, method);
}
