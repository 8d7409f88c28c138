/**
 * Returns the state that all copies of this package in the process share under `name`. The first call creates it.
 * A process has several copies if it loads both module formats, or if packages of a workspace installed their own.
 */
export function sharedState<State extends object>(name: string, make: () => State): State {
  const key = Symbol.for(`nestjs-distributed-lock/${name}`);
  const existingState: State | undefined = Reflect.get(globalThis, key);
  if (existingState) return existingState;
  const newState = make();
  Object.defineProperty(globalThis, key, { value: newState });
  return newState;
}
