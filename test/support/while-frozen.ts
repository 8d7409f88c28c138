/** Freezes what `freeze` freezes while `work` runs, also where that fails. */
export async function whileFrozen(
  freeze: () => Promise<() => Promise<void>>,
  work: () => Promise<unknown>,
): Promise<void> {
  const thaw = await freeze();
  try {
    await work();
  } finally {
    await thaw();
  }
}
