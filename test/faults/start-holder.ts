import { type Contract, Holder, type Listener, type SpawnOptions } from '../support/index.js';

/** A process of its own on the backend under test. It ends when the test's time is up: who waits for its answer fails. */
export async function startHolder(
  { harness, timeIsUp }: Contract,
  env: SpawnOptions['env'] = {},
  through?: Listener,
): Promise<Holder> {
  if (!harness.connection) throw new Error('no other process can connect to this backend');
  const holder = await Holder.start(harness.connection(through), { env });
  const kill = (): void => void holder.kill();
  timeIsUp.addEventListener('abort', kill, { once: true });
  if (timeIsUp.aborted) kill();
  return holder;
}
