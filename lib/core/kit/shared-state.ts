/**
 * Returns the state that all copies of this package in the process share under `name`. Copies are its two module formats, or
 * the installations of several packages of a workspace. The first one makes it.
 */
export function sharedState<State extends object>(name: string, make: () => State): State {
  const key = Symbol.for(`nestjs-distributed-lock/${name}`);
  const found: State | undefined = Reflect.get(globalThis, key);
  if (found) return found;
  const made = make();
  Object.defineProperty(globalThis, key, { value: made });
  return made;
}
