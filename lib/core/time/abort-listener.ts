import { type Linked, LinkedQueue } from './linked-queue.js';

type Crowd = LinkedQueue<AbortListener>;

const crowds = new WeakMap<AbortSignal, { readonly crowd: Crowd; readonly onAbort: () => void }>();

/**
 * Calls `onAbort` when a signal aborts, until `end`. Very many may listen to one signal: Node walks through all listeners
 * for each that is added, and warns of more than ten. All of these therefore share one listener.
 */
export class AbortListener implements Linked<AbortListener> {
  /** @internal */
  before: AbortListener | undefined;
  /** @internal */
  after: AbortListener | undefined;
  /** @internal */
  queue: Crowd | undefined;

  /** @param signal must not be aborted yet */
  constructor(
    private readonly signal: AbortSignal,
    readonly onAbort: () => void,
  ) {
    const { crowd, onAbort: shared } = crowdOf(signal);
    if (!crowd.first) signal.addEventListener('abort', shared);
    crowd.push(this);
  }

  end(): void {
    const { crowd, onAbort } = crowdOf(this.signal);
    crowd.delete(this);
    if (!crowd.first) this.signal.removeEventListener('abort', onAbort);
  }
}

function crowdOf(signal: AbortSignal): { readonly crowd: Crowd; readonly onAbort: () => void } {
  const known = crowds.get(signal);
  if (known) return known;
  const crowd: Crowd = new LinkedQueue();
  const onAbort = (): void => {
    for (let next = crowd.first; next; next = crowd.first) {
      next.end();
      next.onAbort();
    }
  };
  crowds.set(signal, { crowd, onAbort });
  return { crowd, onAbort };
}
