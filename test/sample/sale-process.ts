import { fork } from 'node:child_process';
import { once } from 'node:events';

/** The sample application as a process of its own, on a free port. */
export async function startSaleProcess(
  main: string,
  env: Readonly<Record<string, string>>,
): Promise<AsyncDisposable & { readonly url: string }> {
  const child = fork(main, { env: { PATH: process.env['PATH'], PORT: '0', ...env }, silent: true, execArgv: [] });
  let complaints = '';
  child.stdout?.resume();
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (complaints += text));
  const exited = once(child, 'exit');
  const [message]: unknown[] = await Promise.race([once(child, 'message'), exited]);
  if (typeof message !== 'object' || message === null || !('url' in message)) throw new Error(complaints);
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { url: String(message.url), [Symbol.asyncDispose]: stop };
}
