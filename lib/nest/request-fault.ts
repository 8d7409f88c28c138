const faults = new WeakSet<object>();

/** Notes that a request which came from outside is to blame for `error`, rather than this application. */
export function blameRequest(error: object): void {
  faults.add(error);
}

export function isRequestFault(error: object): boolean {
  return faults.has(error);
}
