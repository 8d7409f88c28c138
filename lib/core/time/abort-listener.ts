import { type Linked, LinkedQueue } from './linked-queue.js';

type ListenerQueue = LinkedQueue<AbortListener>;

const sharedListeners = new WeakMap<AbortSignal, { readonly crowd: ListenerQueue; readonly onAbort: () => void }>();

/**
 * Calls `onAbort` when a signal aborts, until `end` is called. All instances for one signal share one event listener:
 * Node searches all listeners for each added one, and warns of more than ten.
 */
export class AbortListener implements Linked<AbortListener> {
  /** @internal */
  before: AbortListener | undefined;
  /** @internal */
  after: AbortListener | undefined;
  /** @internal */
  queue: ListenerQueue | undefined;

  /** @param signal must not be aborted yet */
  constructor(
    private readonly signal: AbortSignal,
    readonly onAbort: () => void,
  ) {
    const { crowd, onAbort: shared } = sharedListenerOf(signal);
    if (!crowd.first) signal.addEventListener('abort', shared);
    crowd.push(this);
  }

  end(): void {
    const { crowd, onAbort } = sharedListenerOf(this.signal);
    crowd.delete(this);
    if (!crowd.first) this.signal.removeEventListener('abort', onAbort);
  }
}

function sharedListenerOf(signal: AbortSignal): { readonly crowd: ListenerQueue; readonly onAbort: () => void } {
  const existing = sharedListeners.get(signal);
  if (existing) return existing;
  const crowd: ListenerQueue = new LinkedQueue();
  const onAbort = (): void => {
    for (let next = crowd.first; next; next = crowd.first) {
      next.end();
      next.onAbort();
    }
  };
  sharedListeners.set(signal, { crowd, onAbort });
  return { crowd, onAbort };
}
