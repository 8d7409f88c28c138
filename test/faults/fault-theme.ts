import type { BackendName } from '../backends/registry.js';
import type { Suite } from '../conformance/suite.js';

/** Faults of one kind, for every backend that the registry lets go through them. */
export interface FaultTheme {
  readonly title: string;
  /** Whether the quick tier leaves it out. @default false */
  readonly thorough?: boolean;
  /** For backends with sessions: the TTL of all their locks. @default the shortest worth testing */
  readonly sessionTtlMs?: number;
  declare(suite: Suite, name: BackendName): void;
}
