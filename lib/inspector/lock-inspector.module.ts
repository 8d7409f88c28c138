import { type DynamicModule, Module, type ModuleMetadata } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LockConfigurationError } from '../core/index.js';
import { createInspectorController, type InspectorGuard } from './inspector.controller.js';
import { LockInspector } from './lock-inspector.js';

export interface LockInspectorOptions {
  /** Path of the page, below a global prefix. @default 'locks' */
  readonly path?: string;
  /**
   * The guards that decide who may look and free keys. `'none'` leaves the decision to a proxy or network before the
   * application. Everybody who reaches the page can stop the work of the application.
   */
  readonly guard: InspectorGuard | readonly InspectorGuard[] | 'none';
  /**
   * Returns the name of the user who frees a key, such as `(request) => request.user.name`. Runs after the
   * guard. The log and the history show the name beside the user's address, which they always have. @default no name
   */
  readonly who?: (request: object) => string;
  /** Modules whose providers a guard class injects. */
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
      controllers: [createInspectorController(path, parseGuards(options), who)],
      providers: [LockInspector],
    };
  }
}

function parseGuards({ guard }: LockInspectorOptions): InspectorGuard[] {
  if (guard === 'none') return [];
  const guards = [guard].flat();
  if (guards.length > 0 && guards.every(isGuard)) return guards;
  throw new LockConfigurationError(
    'LockInspectorModule needs a guard: whoever reaches the page can stop the work of others. Where something else ' +
      "keeps them out, say so: guard: 'none'",
    'guard',
  );
}

function isGuard(guard: unknown): guard is InspectorGuard {
  if (typeof guard === 'function') return true;
  return typeof guard === 'object' && guard !== null && 'canActivate' in guard;
}
