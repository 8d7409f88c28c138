import type { LazyModuleLoader, ModulesContainer } from '@nestjs/core';
import { findModule, type NestModule } from './nest-modules.js';

export interface ModuleExplorer {
  /** @throws LockConfigurationError */
  explore(module: NestModule): Promise<void>;
}

/**
 * First explorer of each class, by application. Before 11.2, Nest makes a second explorer for a lazy module that
 * imports the explorer's module. The second explorer is ignored.
 */
const explorersByLoader = new WeakMap<LazyModuleLoader, Map<Function, ModuleExplorer>>();

/**
 * Has `explorer` explore each lazy module and its imports before `load` resolves, because Nest calls no hooks of lazy
 * modules. An error rejects `load`; the next load of the module calls the explorer again.
 */
export function exploreLazyModules(
  loader: LazyModuleLoader,
  modules: ModulesContainer,
  explorer: ModuleExplorer,
): void {
  const explorers = explorersByLoader.get(loader) ?? new Map<Function, ModuleExplorer>();
  if (explorers.has(explorer.constructor)) return;
  explorersByLoader.set(loader, explorers.set(explorer.constructor, explorer));
  /** Modules that are loaded at the start count as explored: the explorer's `onModuleInit` explores them. */
  const explorations = new WeakMap<NestModule, Promise<void>>();
  for (const module of modules.values()) explorations.set(module, Promise.resolve());
  const startExploration = (module: NestModule): Promise<void> =>
    explorer.explore(module).catch((error: unknown) => {
      explorations.delete(module);
      throw error;
    });
  const originalLoad = loader.load.bind(loader);
  loader.load = async (...args) => {
    const moduleRef = await originalLoad(...args);
    const module = findModule(modules, moduleRef);
    for (const loadedModule of module ? collectImports(module) : []) {
      const exploration = explorations.get(loadedModule) ?? startExploration(loadedModule);
      explorations.set(loadedModule, exploration);
      await exploration;
    }
    return moduleRef;
  };
}

function collectImports(module: NestModule, visited = new Set<NestModule>()): Set<NestModule> {
  if (visited.has(module)) return visited;
  visited.add(module);
  for (const importedModule of module.imports) collectImports(importedModule, visited);
  return visited;
}
