export interface EventSource {
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

const listenersBySource = new WeakMap<EventSource, Set<() => void>>();

/**
 * Calls `listener` once at the first of the events. All listeners of a source share one listener of each event, because
 * Node warns of more than ten. All calls for one source must name the same events. Returns a function that removes the
 * listener.
 */
export function onFirstEvent(source: EventSource, events: readonly string[], listener: () => void): () => void {
  const listeners = listenersBySource.get(source) ?? createSharedListeners(source, events);
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function createSharedListeners(source: EventSource, events: readonly string[]): Set<() => void> {
  const listeners = new Set<() => void>();
  const onEvent = (): void => {
    for (const event of events) source.off(event, onEvent);
    listenersBySource.delete(source);
    for (const listener of listeners) listener();
  };
  for (const event of events) source.once(event, onEvent);
  listenersBySource.set(source, listeners);
  return listeners;
}
