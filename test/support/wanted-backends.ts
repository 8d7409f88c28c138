const wanted = (process.env.LOCK_BACKENDS ?? '').split(',').filter((name) => name !== '');

/** Whether `LOCK_BACKENDS` leaves this backend in: it names the backend, or its family (`redis` for `redis-plain`), and the server is there. */
function isWanted(name: string): boolean {
  if (name.startsWith('mysql') && process.env.LOCK_MYSQLD === '') return false;
  return wanted.length === 0 || wanted.some((one) => name === one || name.startsWith(`${one}-`));
}

/** Those of `names` that are wanted. Where none is, the file says so, because jest fails one without a test. */
export function wantedOf<Name extends string>(names: readonly Name[]): Name[] {
  const left = names.filter(isWanted);
  if (left.length === 0)
    it(`${names.join(', ')}: left out by LOCK_BACKENDS, or for want of the server`, () => undefined);
  return left;
}

/** A block of tests for each of `names` that is wanted, whose title has the name for `%s`. */
export function describeWanted<Name extends string>(
  names: readonly Name[],
  title: string,
  tests: (name: Name) => void,
): void {
  for (const name of wantedOf(names)) describe(title.replace('%s', name), () => tests(name));
}
