import { LockService, sharedState } from '../core/index.js';

/** Copy of this package that the process has loaded: one for each module format and each installation. */
interface Copy {
  readonly serviceClass: typeof LockService;
  /** Path of this module in the copy; `undefined` where the runtime does not report it. */
  readonly file: string | undefined;
}

const copies = sharedState('copies', () => new Set<Copy>());

/** Pattern of the first file in a stack trace. */
const FILE_PATTERN = /(?:file:\/\/|[A-Z]:\\|\/)[^\n()]*?(?=:\d+:\d+)/u;

copies.add({ serviceClass: LockService, file: FILE_PATTERN.exec(new Error('stack').stack ?? '')?.[0] });

/**
 * Returns the `LockService` classes of other copies: the tokens by which their decorators inject the default service.
 */
export function getForeignServiceClasses(): readonly (typeof LockService)[] {
  return Array.from(copies, ({ serviceClass }) => serviceClass).filter((other) => other !== LockService);
}

export function getSeveralCopiesWarning(): string | undefined {
  if (copies.size < 2) return undefined;
  const files = Array.from(copies, ({ file = 'an unknown file' }) => file);
  return `nestjs-distributed-lock is loaded ${copies.size} times, from ${files.join(' and ')}: they share the locks of this application, and errors are told apart by isLockError and their code, not by instanceof. One installation is better`;
}
