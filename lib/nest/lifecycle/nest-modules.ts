import { ModuleRef, type ModulesContainer } from '@nestjs/core';

export type NestModule = ModulesContainer extends Map<string, infer Value> ? Value : never;

export function findModule(modules: ModulesContainer, moduleRef: ModuleRef): NestModule | undefined {
  return Array.from(modules.values()).find((module) => module.getProviderByKey(ModuleRef)?.instance === moduleRef);
}

/** Returns the module whose provider Nest injects for `token` into providers of `host`: the nearest one by imports. */
export function findProvidingModule(host: NestModule, token: Function | string): NestModule | undefined {
  return host.hasProvider(token) ? host : findExportingModule(host.imports, token, new Set());
}

function findExportingModule(
  candidates: Iterable<NestModule>,
  token: Function | string,
  visited: Set<NestModule>,
): NestModule | undefined {
  for (const module of candidates) {
    if (visited.has(module)) continue;
    visited.add(module);
    if (module.hasProvider(token) && module.exports.has(token)) return module;
    const reexportedModules = Array.from(module.imports).filter(({ metatype }) => module.exports.has(metatype));
    const exportingModule = findExportingModule(reexportedModules, token, visited);
    if (exportingModule) return exportingModule;
  }
  return undefined;
}
