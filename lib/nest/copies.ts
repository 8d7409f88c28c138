import { LockService, sharedState } from '../core/index.js';

interface Copy {
  readonly service: typeof LockService;
  /** Its file, or nothing where the runtime does not say. */
  readonly file: string | undefined;
}

/** Those of this package in the process: its two module formats, or the installations of a workspace's packages. */
const copies = sharedState('copies', () => new Set<Copy>());

const FILE = /(?:file:\/\/|[A-Z]:\\|\/)[^\n()]*?(?=:\d+:\d+)/u;

copies.add({ service: LockService, file: FILE.exec(new Error('here').stack ?? '')?.[0] });

/** The `LockService` classes of other copies, by which their decorators ask for the service of the default backend. */
export function foreignServiceClasses(): readonly (typeof LockService)[] {
  return Array.from(copies, ({ service }) => service).filter((service) => service !== LockService);
}

/** The warning about several copies; nothing where there is one. */
export function describeCopies(): string | undefined {
  if (copies.size < 2) return undefined;
  const files = Array.from(copies, ({ file = 'an unknown file' }) => file);
  return `nestjs-distributed-lock is loaded ${copies.size} times, from ${files.join(' and ')}: they share the locks of this application, and errors are told apart by isLockError and their code, not by instanceof. One installation is better`;
}
