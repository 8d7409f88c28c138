/** The offer of a child to its parent: functions of at most one argument, which travels by structured clone. */
// The parameter is contravariant, so that `never` admits every function.
export type ChildApi = Readonly<Record<string, (payload: never) => unknown>>;

export interface CallMessage {
  readonly id: number;
  readonly name: string;
  readonly payload: unknown;
}

export type ChildMessage =
  | { readonly type: 'ready' }
  | { readonly type: 'result'; readonly id: number; readonly result: unknown }
  | { readonly type: 'error'; readonly id: number; readonly error: unknown };

/**
 * To be called by the file that `spawnChild` runs: answers the parent's calls until the parent is gone or finishes it.
 * Errors arrive at the parent with name, message and stack.
 */
export function serve(api: ChildApi): void {
  const orphaned = () => process.exit(1);
  process.on('disconnect', orphaned);
  process.on('message', (message: CallMessage | 'finish') => {
    if (message === 'finish') {
      process.off('disconnect', orphaned);
      process.disconnect();
    } else {
      void answer(api, message);
    }
  });
  send({ type: 'ready' });
}

async function answer(api: ChildApi, { id, name, payload }: CallMessage): Promise<void> {
  try {
    const handler = api[name];
    if (handler === undefined) throw new TypeError(`The child does not know "${name}"`);
    send({ type: 'result', id, result: await handler(payload as never) });
  } catch (error) {
    send({ type: 'error', id, error });
  }
}

function send(message: ChildMessage): void {
  process.send?.(message);
}
