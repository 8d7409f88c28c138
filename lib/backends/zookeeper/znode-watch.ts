import { listChildren, type ZnodeState, readZnode } from './znodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZnodeEvent } from './transport/single-connection-client.js';

/**
 * Watch of one znode, or of the children of one. Calls the listener once: for the next change, or for the end of the
 * connection.
 */
export class ZnodeWatch {
  #connection: ZooKeeperConnection | undefined;
  #removeListener: () => void = () => undefined;

  isActiveOn(connection: ZooKeeperConnection): boolean {
    return this.#connection === connection;
  }

  /** Replaces the watch that was set before. Returns `null`, and watches nothing, if the znode does not exist. */
  async readAndWatch(connection: ZooKeeperConnection, path: string, onEvent: (event: ZnodeEvent) => void) {
    const removeListener = this.#addListener(connection, path, onEvent);
    let state: ZnodeState | null = null;
    try {
      state = await readZnode(connection, path, true);
    } finally {
      if (!state) {
        removeListener();
        this.#connection = undefined;
      }
    }
    return state;
  }

  listAndWatch(connection: ZooKeeperConnection, path: string, onEvent: () => void): Promise<readonly string[]> {
    this.#addListener(connection, path, onEvent);
    return listChildren(connection, path, true);
  }

  end(): void {
    this.#connection = undefined;
    this.#removeListener();
  }

  /**
   * Must be called before the request is sent: the event may arrive in the same packet as the answer. Returns a
   * function that removes the listener.
   */
  #addListener(connection: ZooKeeperConnection, path: string, onEvent: (event: ZnodeEvent) => void): () => void {
    this.end();
    const listener = (event: ZnodeEvent): void => {
      this.#connection = undefined;
      onEvent(event);
    };
    const removeListener = (): void => connection.watches.delete(path, listener);
    this.#connection = connection;
    this.#removeListener = removeListener;
    connection.watches.add(path, listener);
    return removeListener;
  }
}
