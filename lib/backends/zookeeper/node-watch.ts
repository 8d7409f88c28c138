import { type NodeState, readNode } from './nodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { NodeEvent } from './transport/single-connection-client.js';

/** Watches one node. Tells once of its next change, or of the end of its connection. */
export class NodeWatch {
  /** `undefined` when there is nothing more to tell. */
  #connection: ZooKeeperConnection | undefined;
  #forget: () => void = () => undefined;

  isOn(connection: ZooKeeperConnection): boolean {
    return this.#connection === connection;
  }

  /** Reads a node, and watches it instead of the former one. `null`: it does not exist, and nothing is watched. */
  async read(connection: ZooKeeperConnection, path: string, onEvent: (event: NodeEvent) => void) {
    this.end();
    const listener = (event: NodeEvent): void => {
      this.#connection = undefined;
      onEvent(event);
    };
    const forget = (): void => connection.watches.delete(path, listener);
    this.#connection = connection;
    this.#forget = forget;
    // The event may come with the same packet as the answer.
    connection.watches.add(path, listener);
    let state: NodeState | null = null;
    try {
      state = await readNode(connection, path, true);
    } finally {
      if (!state) {
        forget();
        this.#connection = undefined;
      }
    }
    return state;
  }

  end(): void {
    this.#connection = undefined;
    this.#forget();
  }
}
