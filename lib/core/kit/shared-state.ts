/**
 * Returns the state that all copies of this package in the process share under `name`. The first call creates it.
 * Copies are the two module formats, or installations by several packages of a workspace.
 */
export function sharedState<State extends object>(name: string, make: () => State): State {
  const key = Symbol.for(`nestjs-distributed-lock/${name}`);
  const existing: State | undefined = Reflect.get(globalThis, key);
  if (existing) return existing;
  const created = make();
  Object.defineProperty(globalThis, key, { value: created });
  return created;
}
