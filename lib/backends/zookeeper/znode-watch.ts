import { childrenOf, type NodeState, readNode } from './nodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { NodeEvent } from './transport/single-connection-client.js';

/** Watches one node, or its children. Tells once of the next change, or of the end of the connection. */
export class NodeWatch {
  /** `undefined` when there is nothing more to tell. */
  #connection: ZooKeeperConnection | undefined;
  #forget: () => void = () => undefined;

  isOn(connection: ZooKeeperConnection): boolean {
    return this.#connection === connection;
  }

  /** Reads a node, and watches it instead of the former one. `null`: it does not exist, and nothing is watched. */
  async read(connection: ZooKeeperConnection, path: string, onEvent: (event: NodeEvent) => void) {
    const forget = this.#begin(connection, path, onEvent);
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

  /** Lists the children of a node, and watches for others instead of what was watched before. */
  list(connection: ZooKeeperConnection, path: string, onEvent: () => void): Promise<readonly string[]> {
    this.#begin(connection, path, onEvent);
    return childrenOf(connection, path, true);
  }

  end(): void {
    this.#connection = undefined;
    this.#forget();
  }

  /** Listens before the request is sent: the event may come with the same packet as the answer. */
  #begin(connection: ZooKeeperConnection, path: string, onEvent: (event: NodeEvent) => void): () => void {
    this.end();
    const listener = (event: NodeEvent): void => {
      this.#connection = undefined;
      onEvent(event);
    };
    const forget = (): void => connection.watches.delete(path, listener);
    this.#connection = connection;
    this.#forget = forget;
    connection.watches.add(path, listener);
    return forget;
  }
}
