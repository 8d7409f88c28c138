import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { endKeeper, NOT_FOUND, startKeeper } from '../kept/kept.js';
import { freePort } from '../../servers/free-port.js';
import type { ServerRecipe } from '../../servers/recipe.js';

/** A server for one stampede. */
export interface Server extends AsyncDisposable {
  /** Value of the shops' variable that leads to it. */
  readonly address: string;
  /** Servers that can be killed one by one, in this order, where there are several. */
  readonly nodes?: readonly Server[];
}

/** Starts several servers that know nothing of each other. @throws as `startServer` does; then none is left */
export function startServers(recipe: ServerRecipe, count: number): Promise<Server> {
  return combineServers(Array.from({ length: count }, () => startServer(recipe)));
}

/** Returns several servers as one. Rejects when any of them does; then none is left. */
export async function combineServers(starting: readonly Promise<Server>[]): Promise<Server> {
  const starts = await Promise.allSettled(starting);
  const nodes = starts.flatMap((start) => (start.status === 'fulfilled' ? [start.value] : []));
  const end = async (): Promise<void> => {
    await Promise.all(nodes.map((node) => node[Symbol.asyncDispose]()));
  };
  const failed = starts.find((start) => start.status === 'rejected');
  if (!failed) return { address: nodes.map(({ address }) => address).join(','), nodes, [Symbol.asyncDispose]: end };
  await end();
  throw failed.reason;
}

/** Starts a server that ends with this process, even if that is killed. @throws Error that says what to install */
export async function startServer(recipe: ServerRecipe): Promise<Server> {
  const port = await freePort();
  const keeper = await startServerKeeper(recipe, port);
  const failure = await findStartFailure(keeper, recipe);
  if (failure !== undefined) throw failure;
  return { address: recipe.address(port), [Symbol.asyncDispose]: () => endKeeper(keeper) };
}

class NotInstalledError extends Error {
  constructor({ name, install }: ServerRecipe) {
    super(`${name} cannot be started: install it (${install})`);
  }
}

async function startServerKeeper(recipe: ServerRecipe, port: number): Promise<ChildProcess> {
  const { account, initialise, settings, serve, stopSignal } = recipe;
  const directory = await mkdtemp(join(tmpdir(), 'stampede-server-'));
  if (account && !account.own(directory)) {
    await rm(directory, { recursive: true });
    throw new NotInstalledError(recipe);
  }
  if (settings) await writeFile(join(directory, settings.file), settings.text(directory, port));
  const first = initialise ? [initialise(join(directory, 'data'))] : [];
  return startKeeper({ directory, commands: [...first, serve(directory, port)], stopSignal });
}

/** Resolves to `undefined` when the server serves, or to an error when it has ended before. */
function findStartFailure(keeper: ChildProcess, recipe: ServerRecipe): Promise<Error | undefined> {
  return new Promise((resolve) => {
    let output = '';
    for (const stream of [keeper.stdout, keeper.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        output = (output + text).slice(-2_000);
        if (output.includes(recipe.ready)) resolve(undefined);
      });
    }
    keeper.once('exit', (code) => {
      const failure = new Error(`${recipe.name} does not start: ${output.trim()}`);
      const missing = code === NOT_FOUND || (recipe.missing !== undefined && output.includes(recipe.missing));
      resolve(missing ? new NotInstalledError(recipe) : failure);
    });
  });
}
