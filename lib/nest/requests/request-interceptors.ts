import type { NestInterceptor, Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { addFirstInterceptor, addLastInterceptor, isFieldResolver, mayBeHandler } from '../method-metadata.js';
import { guardFieldResolver } from './field-resolvers.js';
import { isObject } from '../../decorators/is-object.js';
import { LockErrorsInterceptor, noteLockErrors } from './lock-errors.interceptor.js';
import type { LockErrors } from './lock-errors.js';
import { RequestScopeInterceptor } from './request-scope.interceptor.js';

/**
 * Puts the interceptors before every handler of the application: routes, messages, gateways and resolvers. Global
 * interceptors would not reach gateways and hybrid applications. Call it before Nest builds the handlers. Classes serve
 * several applications. Hence their metadata names the interceptors, and Nest makes some for each module that it scans
 * afterwards. The modules of the first application get theirs here.
 */
export function interceptHandlers(modules: ModulesContainer, errors: LockErrors | undefined): void {
  if (errors) noteLockErrors(modules, errors);
  const interceptors = [
    { provide: LockErrorsInterceptor, useValue: new LockErrorsInterceptor(modules) },
    { provide: RequestScopeInterceptor, useValue: new RequestScopeInterceptor() },
  ];
  for (const module of modules.values()) {
    const wrappers = [...module.controllers.values(), ...module.providers.values()];
    const classes = wrappers.flatMap(({ metatype, isNotMetatype }) =>
      isClass(metatype) && !isNotMetatype ? [metatype] : [],
    );
    for (const each of classes) markHandlers(each, LockErrorsInterceptor, RequestScopeInterceptor);
    for (const interceptor of interceptors) {
      if (!module.injectables.has(interceptor.provide)) module.addInjectable(interceptor, 'interceptor');
    }
  }
}

function markHandlers(classRef: Type, first: Type<NestInterceptor>, last: Type<NestInterceptor>): void {
  const { prototype } = classRef;
  const names = new MetadataScanner().getAllMethodNames(prototype);
  const handlers = names.flatMap((name): [string, Method][] => {
    const method: unknown = Reflect.get(prototype, name);
    return isMethod(method) && mayBeHandler(method) ? [[name, method]] : [];
  });
  if (handlers.length > 0) addFirstInterceptor(classRef, first);
  for (const [name, method] of handlers) {
    addLastInterceptor(method, last);
    if (isFieldResolver(method)) guardFieldResolver(prototype, name, method);
  }
}

function isClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && isObject(metatype.prototype);
}
