import { type Linked, LinkedQueue } from './linked-queue.js';

type Crowd = LinkedQueue<AbortListener>;

const crowds = new WeakMap<AbortSignal, { readonly crowd: Crowd; readonly onAbort: () => void }>();

/**
 * Calls `onAbort` when a signal aborts to which very many may listen, until `end`. Node walks through all listeners of
 * a signal for every one that is added, and takes more than ten for a leak: so all of these share one, which goes with
 * the last of them.
 */
export class AbortListener implements Linked<AbortListener> {
  /** @internal */
  before: AbortListener | undefined;
  /** @internal */
  after: AbortListener | undefined;
  /** @internal */
  queue: Crowd | undefined;

  /** @param signal not aborted yet */
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
