/** Returns a function that keeps what it is given, and ends it after the test, what came last first. */
export function endAfterEach<Kept>(end: (kept: Kept) => unknown): <One extends Kept>(one: One) => One {
  const kept: Kept[] = [];
  afterEach(async () => {
    for (const one of kept.splice(0).toReversed()) await end(one);
  });
  return (one) => {
    kept.push(one);
    return one;
  };
}

export function closeAfterEach(): <One extends { close(): unknown }>(one: One) => One {
  return endAfterEach((one: { close(): unknown }) => one.close());
}
