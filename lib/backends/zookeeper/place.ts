import type { Holder } from '../../core/index.js';
import { holderOf } from './node-name.js';
import { type OwnNode, readNode } from './nodes.js';
import type { NodeEvent } from './tamed-client.js';
import type { ZooKeeperConnection } from './zookeeper-connection.js';
import type { ZooKeeperSession } from './zookeeper-session.js';

/** Where a contender is: the key is its, or somebody is in the way. */
export type Standing =
  | { readonly node: OwnNode }
  | {
      readonly node: null;
      readonly holder: Holder | undefined;
      /** Resolves when it is worth another look. */
      readonly change: Promise<void>;
      /** Whoever no longer waits for the change says so. */
      readonly forget: () => void;
    };

/** What one contender has on the server, within one session. */
export interface Place {
  readonly session: ZooKeeperSession;
  /**
   * Takes the place if it is not taken yet. After a lost connection it finds out first what has become of it. Whoever does not
   * `watch` is not told of a change.
   * @throws ConnectionLostError: look again over the next one; ServerRefusalError
   */
  look(watch: boolean): Promise<Standing>;
  /** Takes away what is there of ours, and nothing else. @throws as `look` */
  leave(): Promise<void>;
}

/** Waits for the end of another's node. `null`: it is gone. `holder`, if it is another node, says whose key it is. */
export async function behind(
  connection: ZooKeeperConnection,
  path: string,
  { watch, holderPath = path }: { readonly watch: boolean; readonly holderPath?: string },
): Promise<(Standing & { node: null }) | null> {
  let onEvent: (event: NodeEvent) => void = () => undefined;
  const change = new Promise<void>((resolve) => (onEvent = () => resolve()));
  const asked = readNode(connection, path, watch ? onEvent : undefined);
  const askedForHolder = holderPath === path ? asked : readNode(connection, holderPath);
  const [state, first] = await Promise.all([asked, askedForHolder]);
  if (!state) return null;
  const holder = first ? holderOf(first) : undefined;
  return { node: null, holder, change, forget: () => connection.watches.delete(path, onEvent) };
}
