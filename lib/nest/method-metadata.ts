import 'reflect-metadata';
import type { Declaration } from '../decorators/declaration.js';
import { isObject } from '../decorators/is-object.js';

/** Keys under which Nest and its packages describe a handler. None of these is imported for it. */
const PARAMETERS = '__routeArguments__';
const CUSTOM_PARAMETER = '__customRouteArgs__';
/** `RouteParamtypes.RESPONSE` of `@nestjs/common`. */
const RESPONSE = '1:';
/** `RouteParamtypes.PARAM`. */
const ROUTE_PARAMETER = '5:';
const SSE = '__sse__';
const ROUTE = 'path';
const VERB = 'method';
const MESSAGES = ['message', 'microservices:pattern'] as const;
const FIELD_RESOLVER = 'graphql:resolve_property';
const RESOLVERS = ['graphql:resolver_type', FIELD_RESOLVER] as const;
const TRANSPORT = 'microservices:transport';
/** `Transport.GRPC` of `@nestjs/microservices`. */
const GRPC = 4;
const MESSAGE_KIND = 'microservices:handler_type';
/** `PatternHandler.EVENT` of `@nestjs/microservices`. */
const EVENT = 2;
const INTERCEPTORS = '__interceptors__';
const FILTERS = '__exceptionFilters__';
const CAUGHT = '__filterCatchExceptions__';
const DECLARATION = Symbol.for('nestjs-distributed-lock/declaration with @Locked');
/** Decorators put these on methods that nobody calls from outside, too. */
const ENHANCERS: ReadonlySet<unknown> = new Set([INTERCEPTORS, '__guards__', '__pipes__', FILTERS, DECLARATION]);

/** The positions of route parameters, by `@Param('id')`. */
export function routeParameters({ target, name }: Declaration): ReadonlySet<number> {
  const parameters: unknown = Reflect.getMetadata(PARAMETERS, target.constructor, name);
  const found = Object.entries(parameters ?? {}).filter(([kind]) => kind.startsWith(ROUTE_PARAMETER));
  return new Set(found.flatMap(([, parameter]) => (isParameter(parameter) ? [parameter.index] : [])));
}

/** Names given by `@Param('id')`, `@Body('id')`, `@Payload('id')`, `@Args('id')` and the like, and their positions. */
export function namedParameters({ target, name }: Declaration): ReadonlyMap<string, number | 'ambiguous'> {
  const parameters: unknown = Reflect.getMetadata(PARAMETERS, target.constructor, name);
  const named = new Map<string, number | 'ambiguous'>();
  for (const [kind, parameter] of Object.entries(parameters ?? {})) {
    if (kind.includes(CUSTOM_PARAMETER) || !isParameter(parameter)) continue;
    const { index, data } = parameter;
    if (typeof data !== 'string' || data === '') continue;
    named.set(data, named.has(data) ? 'ambiguous' : index);
  }
  return named;
}

function isParameter(value: unknown): value is { readonly index: number; readonly data?: unknown } {
  return isObject(value) && 'index' in value && typeof value.index === 'number';
}

/** Whether a parameter is the response, by `@Res()`, which Nest then leaves to the method. */
export function takesResponse({ target, name }: Declaration): boolean {
  const parameters: unknown = Reflect.getMetadata(PARAMETERS, target.constructor, name);
  return Object.entries(parameters ?? {}).some(([kind, parameter]) => {
    if (!kind.startsWith(RESPONSE) || !isParameter(parameter)) return false;
    const { data } = parameter;
    return !(isObject(data) && 'passthrough' in data && data.passthrough === true);
  });
}

/** The classes of a method's arguments, if the compiler wrote them down. */
export function parameterTypes({ target, name }: Declaration): readonly unknown[] | undefined {
  const types: unknown = Reflect.getMetadata('design:paramtypes', target, name);
  return Array.isArray(types) ? types : undefined;
}

/** Whether the compiler wrote down that the method returns an Observable, of whichever copy of rxjs. */
export function returnsObservable({ target, name }: Declaration): boolean {
  const type: unknown = Reflect.getMetadata('design:returntype', target, name);
  const prototype: unknown = typeof type === 'function' ? type.prototype : undefined;
  return isObject(prototype) && 'subscribe' in prototype && 'lift' in prototype;
}

export function isEventStream(method: object): boolean {
  return Reflect.getMetadata(SSE, method) === true;
}

/** Whether Nest or another library may call `method` with a request at hand. */
export function mayBeHandler(method: object): boolean {
  return Reflect.getMetadataKeys(method).some((key: unknown) => !ENHANCERS.has(key));
}

/** Whether `method` answers messages of a gateway or a microservice. Their data has names of its own. */
export function isMessageHandler(method: object): boolean {
  return MESSAGES.some((key) => Reflect.hasMetadata(key, method));
}

/** Whether `method` handles events, which nobody waits for. */
export function isEventHandler(method: object): boolean {
  return Reflect.getMetadata(MESSAGE_KIND, method) === EVENT;
}

export function isGrpcMethod(method: object): boolean {
  return Reflect.getMetadata(TRANSPORT, method) === GRPC;
}

/** Whether `method` is a query, a mutation, a subscription or a field of GraphQL. */
export function isResolver(method: object): boolean {
  return RESOLVERS.some((key) => Reflect.hasMetadata(key, method));
}

/** Whether `method` resolves a field of an object of GraphQL. */
export function isFieldResolver(method: object): boolean {
  return Reflect.hasMetadata(FIELD_RESOLVER, method);
}

/** Whether `method` answers HTTP. */
export function isRoute(method: object): boolean {
  return Reflect.hasMetadata(VERB, method);
}

/** Whether Nest calls `method`, but not for HTTP. */
export function isForeignHandler(method: object): boolean {
  return isMessageHandler(method) || isResolver(method);
}

/** Whether the route of `method`, of its controller, or one of the prefixes names the parameter. */
export function routeHas(method: object, controller: object, name: string, prefixes: readonly string[] = []): boolean {
  const route: unknown = Reflect.getMetadata(ROUTE, method);
  if (route === undefined) return false;
  const paths: unknown[] = [route, Reflect.getMetadata(ROUTE, controller), ...prefixes];
  return paths
    .flat()
    .filter((path) => typeof path === 'string')
    .flatMap((path) => [...path.matchAll(/[:*](?<name>[\p{ID_Continue}$]+)/gu)])
    .some((match) => match.groups?.['name'] === name);
}

/** Puts `interceptor` before those of a class, which come before those of its methods. */
export function addFirstInterceptor(classRef: object, interceptor: unknown): void {
  const others = interceptorsOf(classRef).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS, [interceptor, ...others], classRef);
}

/** Puts `interceptor` behind those of `method`, directly before the method. */
export function addLastInterceptor(method: object, interceptor: unknown): void {
  const others = interceptorsOf(method).filter((other) => other !== interceptor);
  Reflect.defineMetadata(INTERCEPTORS, [...others, interceptor], method);
}

function interceptorsOf(target: object): readonly unknown[] {
  const interceptors: unknown = Reflect.getMetadata(INTERCEPTORS, target);
  return Array.isArray(interceptors) ? interceptors : [];
}

/** The filters, or their classes, that a class has by `@UseFilters`. */
export function filtersOf(target: object): readonly unknown[] {
  const filters: unknown = Reflect.getMetadata(FILTERS, target);
  return Array.isArray(filters) ? filters : [];
}

/** The errors that `@Catch` of a filter, or of its class, lists. */
export function caughtTypes(filter: unknown): readonly (abstract new (...args: never[]) => unknown)[] {
  const classRef: unknown = isObject(filter) ? filter.constructor : filter;
  const types: unknown = typeof classRef === 'function' ? Reflect.getMetadata(CAUGHT, classRef) : undefined;
  return Array.isArray(types) ? types : [];
}

/** Nest may call a wrapper that has only the metadata of the locked method. */
export function noteDeclaration(declaration: Declaration, method: object): void {
  Reflect.defineMetadata(DECLARATION, declaration, method);
}

export function declarationOf(method: object): unknown {
  return Reflect.getMetadata(DECLARATION, method);
}
