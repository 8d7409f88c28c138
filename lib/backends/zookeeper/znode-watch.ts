import { listChildren, type ZnodeState, readZnode } from './znodes.js';
import type { ZooKeeperConnection } from './transport/connection.js';
import type { ZnodeEvent } from './transport/single-connection-client.js';

/**
 * Watch of one znode, or of its children. Calls its listener once: for the next change, or for the end of the
 * connection.
 */
export class ZnodeWatch {
  /** Connection of the watch; `undefined` when nothing is watched. */
  #connection: ZooKeeperConnection | undefined;
  #removeListener: () => void = () => undefined;

  isOn(connection: ZooKeeperConnection): boolean {
    return this.#connection === connection;
  }

  /**
   * Reads a znode, and watches it instead of the last one. Returns `null`, and watches nothing, if it does not exist.
   */
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

  /** Lists the children of a znode, and watches for others instead of the last watch. */
  listAndWatch(connection: ZooKeeperConnection, path: string, onEvent: () => void): Promise<readonly string[]> {
    this.#addListener(connection, path, onEvent);
    return listChildren(connection, path, true);
  }

  end(): void {
    this.#connection = undefined;
    this.#removeListener();
  }

  /**
   * Adds the listener, before the request is sent: the event may arrive in the same packet as the answer. Returns a
   * function that removes it.
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
