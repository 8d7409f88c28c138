import { runInThisContext } from 'node:vm';

/** Jest gives tests a copy of `process`, on which Node emits no warnings. */
const originalProcess = runInThisContext('process') as NodeJS.Process;

/** Resolves to the names of the warnings that Node has emitted during `work`, but for those of experimental features. */
export async function warningsDuring(work: () => Promise<unknown>): Promise<string[]> {
  const names: string[] = [];
  const onWarning = ({ name }: Error): void => void names.push(name);
  originalProcess.on('warning', onWarning);
  try {
    await work();
    // A warning is emitted in the next tick.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    originalProcess.off('warning', onWarning);
  }
  return names.filter((name) => name !== 'ExperimentalWarning');
}
