import type { Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { isMethod, type Method } from '../../decorators/declaration.js';
import {
  addFirstInterceptor,
  addLastInterceptor,
  getInterceptors,
  isEventHandler,
  isEventStream,
  isFieldResolver,
  mayBeHandler,
  removeInterceptor,
} from '../method-metadata.js';
import { ANSWERS_EVENTS_EARLY } from '../nest-10.js';
import { wrapEventStream } from './event-streams.js';
import { wrapFieldResolver } from './field-resolvers.js';
import { isObject } from '../../decorators/is-object.js';
import { LockErrorsInterceptor } from './lock-errors.interceptor.js';
import { RequestScopeInterceptor } from './request-scope.interceptor.js';

interface Handler {
  readonly name: string;
  readonly method: Method;
}

type HasLockedMethod = (prototype: object, name: string) => boolean;

/**
 * Adds the interceptors to the handlers that need them, because global interceptors do not run in gateways and hybrid
 * applications. Must be called before Nest builds the handlers.
 * The metadata names classes of interceptors, not instances, because several applications may share a controller.
 * Nest creates instances for modules that it scans later. This function adds instances to modules scanned before.
 */
export function interceptHandlers(modules: ModulesContainer, hasLockedMethod: HasLockedMethod): void {
  const interceptors = [
    { provide: LockErrorsInterceptor, useValue: new LockErrorsInterceptor(modules) },
    { provide: RequestScopeInterceptor, useValue: new RequestScopeInterceptor() },
  ];
  for (const module of modules.values()) {
    const wrappers = [...module.controllers.values(), ...module.providers.values()];
    const classes = wrappers.flatMap(({ metatype, isNotMetatype }) =>
      isClass(metatype) && !isNotMetatype ? [metatype] : [],
    );
    for (const classRef of classes) addInterceptors(classRef, hasLockedMethod);
    for (const interceptor of interceptors) {
      if (!module.injectables.has(interceptor.provide)) module.addInjectable(interceptor, 'interceptor');
    }
  }
}

function addInterceptors(classRef: Type, hasLockedMethod: HasLockedMethod): void {
  const handlers = getHandlers(classRef.prototype);
  if (handlers.length === 0) return;
  const interceptedHandlers = handlers.filter(
    ({ name, method }) =>
      isSafeToIntercept(method) ||
      hasLockedMethod(classRef.prototype, name) ||
      [classRef, method].some(hasOtherInterceptors),
  );
  const plainHandlers = handlers.filter((handler) => !interceptedHandlers.includes(handler));
  if (plainHandlers.length === 0) addFirstInterceptor(classRef, LockErrorsInterceptor);
  else {
    removeInterceptor(classRef, LockErrorsInterceptor);
    for (const { method } of interceptedHandlers) addFirstInterceptor(method, LockErrorsInterceptor);
  }
  for (const { name, method } of interceptedHandlers) {
    addLastInterceptor(method, RequestScopeInterceptor);
    if (isFieldResolver(method)) wrapFieldResolver(classRef.prototype, name, method);
  }
  for (const { name, method } of plainHandlers) {
    if (isEventStream(method)) wrapEventStream(classRef.prototype, name, method);
  }
}

function getHandlers(prototype: object): readonly Handler[] {
  return new MetadataScanner().getAllMethodNames(prototype).flatMap((name) => {
    const method: unknown = Reflect.get(prototype, name);
    return isMethod(method) && mayBeHandler(method) ? [{ name, method }] : [];
  });
}

/**
 * Returns whether callers always subscribe to the handler's result, because a handler with interceptors runs only on a
 * subscription. Message servers may await the handler of an event without subscribing. Old versions of Nest answer a
 * request for an event stream before they subscribe.
 */
function isSafeToIntercept(method: Method): boolean {
  return !isEventHandler(method) && !(ANSWERS_EVENTS_EARLY && isEventStream(method));
}

function hasOtherInterceptors(target: object): boolean {
  const ownInterceptors: readonly unknown[] = [LockErrorsInterceptor, RequestScopeInterceptor];
  return getInterceptors(target).some((interceptor) => !ownInterceptors.includes(interceptor));
}

function isClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && isObject(metatype.prototype);
}
