import { type Linked, LinkedQueue } from './linked-queue.js';

type ListenerQueue = LinkedQueue<AbortListener>;

const sharedListeners = new WeakMap<AbortSignal, { readonly listeners: ListenerQueue; readonly onAbort: () => void }>();

/**
 * Calls `onAbort` when a signal aborts, until `end` is called. All instances for one signal share one event listener:
 * Node searches all listeners for each added one, and warns of more than ten.
 */
export class AbortListener implements Linked<AbortListener> {
  /** @internal */
  previous: AbortListener | undefined;
  /** @internal */
  next: AbortListener | undefined;
  /** @internal */
  queue: ListenerQueue | undefined;

  /** @param signal must not be aborted yet */
  constructor(
    private readonly signal: AbortSignal,
    readonly onAbort: () => void,
  ) {
    const { listeners, onAbort: onSharedAbort } = getSharedListener(signal);
    if (!listeners.first) signal.addEventListener('abort', onSharedAbort);
    listeners.push(this);
  }

  end(): void {
    const { listeners, onAbort } = getSharedListener(this.signal);
    listeners.delete(this);
    if (!listeners.first) this.signal.removeEventListener('abort', onAbort);
  }
}

function getSharedListener(signal: AbortSignal): { readonly listeners: ListenerQueue; readonly onAbort: () => void } {
  const existingListener = sharedListeners.get(signal);
  if (existingListener) return existingListener;
  const listeners: ListenerQueue = new LinkedQueue();
  const onAbort = (): void => {
    for (let listener = listeners.first; listener; listener = listeners.first) {
      listener.end();
      listener.onAbort();
    }
  };
  sharedListeners.set(signal, { listeners, onAbort });
  return { listeners, onAbort };
}
