import { type LazyModuleLoader, ModuleRef, type ModulesContainer } from '@nestjs/core';

type Module = ModulesContainer extends Map<string, infer Each> ? Each : never;

export interface ModuleExplorer {
  /** @throws LockConfigurationError */
  explore(module: Module): Promise<void>;
}

/** Those of an application, by class: before 11.2 Nest makes providers again for a lazy module that imports theirs. */
const explorersOf = new WeakMap<LazyModuleLoader, Map<Function, ModuleExplorer>>();

/**
 * Has `explorer` look at each lazy module, and at what that imports, before the caller of `load` gets it: Nest calls no
 * hooks there. What it throws is the error of the load; a further load of the module asks it again.
 */
export function exploreLazyModules(
  loader: LazyModuleLoader,
  modules: ModulesContainer,
  explorer: ModuleExplorer,
): void {
  const explorers = explorersOf.get(loader) ?? new Map<Function, ModuleExplorer>();
  if (explorers.has(explorer.constructor)) return;
  explorersOf.set(loader, explorers.set(explorer.constructor, explorer));
  const explored = new WeakMap<Module, Promise<void>>();
  for (const module of modules.values()) explored.set(module, Promise.resolve());
  const explore = (module: Module): Promise<void> =>
    explorer.explore(module).catch((error: unknown) => {
      explored.delete(module);
      throw error;
    });
  const load = loader.load.bind(loader);
  loader.load = async (...args) => {
    const loaded = await load(...args);
    const module = Array.from(modules.values()).find((each) => each.getProviderByKey(ModuleRef)?.instance === loaded);
    for (const each of module ? withImports(module) : []) {
      const done = explored.get(each) ?? explore(each);
      explored.set(each, done);
      await done;
    }
    return loaded;
  };
}

function withImports(module: Module, found = new Set<Module>()): Set<Module> {
  if (found.has(module)) return found;
  found.add(module);
  for (const imported of module.imports) withImports(imported, found);
  return found;
}
