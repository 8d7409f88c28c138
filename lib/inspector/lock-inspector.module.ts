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
    const { path = 'locks', imports = [] } = options;
    if (typeof path !== 'string' || !/^[\w/.~-]+$/u.test(path)) {
      throw new LockConfigurationError('path must be that of a page, such as "admin/locks"', 'path');
    }
    return {
      module: LockInspectorModule,
      imports: [DiscoveryModule, ...imports],
      controllers: [inspectorController(path, guardsOf(options))],
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
