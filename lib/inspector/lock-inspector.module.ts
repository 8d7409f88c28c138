import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LockConfigurationError } from '../core/index.js';
import { inspectorController, type InspectorGuard } from './inspector.controller.js';
import { LockInspector } from './lock-inspector.js';

export interface LockInspectorOptions {
  /** Where the page is, below a global prefix. @default 'locks' */
  readonly path?: string;
  /**
   * Who may look, and free keys. `'none'` leaves that to whatever stands before the application: everybody who reaches
   * the page can stop its work.
   */
  readonly guard: InspectorGuard | readonly InspectorGuard[] | 'none';
  /**
   * Who frees a key, for the log and the history, from the request that the guard let in:
   * `(request) => request.user.name`. @default nobody's name; the address is always there
   */
  readonly who?: (request: object) => string;
  /** The modules with what the guard needs. */
  readonly imports?: ModuleMetadata['imports'];
}

/**
 * Serves a page about all locks of the application's backends, and frees a key on demand. Import it beside
 * `DistributedLockModule`, in a process that serves HTTP.
 */
@Module({})
export class LockInspectorModule {
  /** @throws LockConfigurationError */
  static forRoot(options: LockInspectorOptions): DynamicModule {
    const { path = 'locks', imports = [], who } = options;
    if (typeof path !== 'string' || !/^[\w/.~-]+$/u.test(path)) {
      throw new LockConfigurationError('path must be that of a page, such as "admin/locks"', 'path');
    }
    return {
      module: LockInspectorModule,
      imports: [DiscoveryModule, ...imports],
      controllers: [inspectorController(path, guardsOf(options), who)],
      providers: [LockInspector],
    };
  }
}

function guardsOf({ guard }: LockInspectorOptions): InspectorGuard[] {
  if (guard === 'none') return [];
  const guards = [guard].flat();
  if (guards.length > 0 && guards.every(isGuard)) return guards;
  throw new LockConfigurationError(
    'LockInspectorModule needs a guard: whoever reaches the page can stop the work of others. Where something else ' +
      "keeps them out, say so: guard: 'none'",
    'guard',
  );
}

/** A class, or an object with the method. */
function isGuard(guard: unknown): guard is InspectorGuard {
  if (typeof guard === 'function') return true;
  return typeof guard === 'object' && guard !== null && 'canActivate' in guard;
}
