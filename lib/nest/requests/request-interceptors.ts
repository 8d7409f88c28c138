import type { NestInterceptor, Type } from '@nestjs/common';
import { MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { isMethod, type Method } from '../../decorators/declaration.js';
import { addFirstInterceptor, addLastInterceptor, isFieldResolver, mayBeHandler } from '../method-metadata.js';
import { wrapFieldResolver } from './field-resolvers.js';
import { isObject } from '../../decorators/is-object.js';
import { LockErrorsInterceptor, setLockErrorTranslator } from './lock-errors.interceptor.js';
import type { LockErrorTranslator } from './lock-error-translator.js';
import { RequestScopeInterceptor } from './request-scope.interceptor.js';

/**
 * Adds the interceptors to every handler, because global interceptors do not run in gateways and hybrid applications.
 * Must be called before Nest builds the handlers.
 * The metadata of a class names classes of interceptors, because several applications may share the class. Nest makes
 * the instances in modules that it scans later; modules that it has scanned get theirs here.
 */
export function interceptHandlers(modules: ModulesContainer, translator: LockErrorTranslator | undefined): void {
  if (translator) setLockErrorTranslator(modules, translator);
  const interceptors = [
    { provide: LockErrorsInterceptor, useValue: new LockErrorsInterceptor(modules) },
    { provide: RequestScopeInterceptor, useValue: new RequestScopeInterceptor() },
  ];
  for (const module of modules.values()) {
    const wrappers = [...module.controllers.values(), ...module.providers.values()];
    const classes = wrappers.flatMap(({ metatype, isNotMetatype }) =>
      isClass(metatype) && !isNotMetatype ? [metatype] : [],
    );
    for (const classRef of classes) addInterceptors(classRef, LockErrorsInterceptor, RequestScopeInterceptor);
    for (const interceptor of interceptors) {
      if (!module.injectables.has(interceptor.provide)) module.addInjectable(interceptor, 'interceptor');
    }
  }
}

function addInterceptors(classRef: Type, first: Type<NestInterceptor>, last: Type<NestInterceptor>): void {
  const { prototype } = classRef;
  const names = new MetadataScanner().getAllMethodNames(prototype);
  const handlers = names.flatMap((name): [string, Method][] => {
    const method: unknown = Reflect.get(prototype, name);
    return isMethod(method) && mayBeHandler(method) ? [[name, method]] : [];
  });
  if (handlers.length > 0) addFirstInterceptor(classRef, first);
  for (const [name, method] of handlers) {
    addLastInterceptor(method, last);
    if (isFieldResolver(method)) wrapFieldResolver(prototype, name, method);
  }
}

function isClass(metatype: unknown): metatype is Type {
  return typeof metatype === 'function' && isObject(metatype.prototype);
}
