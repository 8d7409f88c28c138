import { existsSync, writeSync } from 'node:fs';
import { type AcquireOptions, type LockHandle, LockService } from 'nestjs-distributed-lock/core';
import { FencedResource } from './fenced-resource.js';
import { type Connection, connectBackend, type DatabaseConnection } from './harness-connection.js';
import { hammer, type Hammering } from './harness-hammer.js';
import { type Leading, stand, takeTurns } from './harness-leader.js';
import { serve } from './serve.js';

/** A holder's knowledge of its lock in one synchronous step. */
export interface Belief {
  readonly isHeld: boolean;
  readonly state: LockHandle['state'];
  readonly aborted: boolean;
  readonly throws: boolean;
  /** By `process.hrtime`, which all processes of a machine share. */
  readonly at: bigint;
}

interface Loss {
  readonly reason: string;
  readonly at: bigint;
}

interface Request {
  readonly key: string;
  readonly options: AcquireOptions;
}

let locks: LockService;
const handles = new Map<string, LockHandle>();
const losses = new Map<string, Promise<Loss>>();
const events: string[] = [];

const api = {
  open: async (connection: Connection) => {
    const note = (name: string) => () => void events.push(name);
    const observer = { jeopardy: note('jeopardy'), safe: note('safe'), lost: note('lost') };
    locks = new LockService(await connectBackend(connection), { observers: [observer] });
  },
  acquire,
  acquireAndBlock: async ({ ms, ...request }: Request & { ms: number }) => {
    await acquire(request);
    return block({ key: request.key, ms });
  },
  transfer: ({ key, withinMs }: { key: string; withinMs: number }) => handleOf(key).transfer({ withinMs }),
  release: (key: string) => handleOf(key).release(),
  acquireAndRelease: ({ key, options }: Request) => locks.withLock(key, () => undefined, options),
  /** From now on only the job can keep this process: it takes a lock, and its answer goes to the standard error. */
  startJob: ({ key, options }: Request) => {
    process.channel?.unref();
    const answer = (text: string) => void writeSync(process.stderr.fd, `answer: ${text}\n`);
    void locks
      .withLock(key, () => 'done', options)
      .then(answer, (error: unknown) => answer(String(error)))
      .then(() => locks.close());
  },
  belief: (key: string) => beliefOf(handleOf(key)),
  loss: (key: string) => losses.get(key),
  events: () => events,
  block,
  /** Computes until the file `marker` exists, which is made while the process is stopped, and says what the lock looks like then. */
  computeUntilThawed: ({ key, marker }: { key: string; marker: string }) => {
    const lock = handleOf(key);
    const since = performance.now();
    // No message leaves before the computation ends; this does.
    writeSync(process.stderr.fd, 'computing\n');
    while (performance.now() - since < 600_000) if (existsSync(marker)) return beliefOf(lock);
    throw new Error('was never thawed');
  },
  /** Writes as a careless holder does, without asking first. */
  write: async ({ key, resource }: { key: string; resource: string }) => {
    using fenced = new FencedResource(resource);
    const owner = `${process.pid}`;
    return await fenced.write({ key, token: handleOf(key).fencingToken, owner, proc: owner });
  },
  /** The same, in a database that has a fence. */
  writeFenced: async ({ key, ledger }: { key: string; ledger: DatabaseConnection }) => {
    const { FencedLedger } = await import('./fenced-ledger.js');
    await using opened = await FencedLedger.open(ledger);
    return await opened.write(handleOf(key));
  },
  hammer: (how: Hammering) => hammer(locks, how),
  lead: (how: Leading) => stand(locks, how),
  takeTurns: (how: Leading) => takeTurns(locks, how),
  sqliteStatements: async () => (await import('./counted-sqlite.js')).sqliteStatements.length,
  wallClock: () => Date.now(),
  close: () => locks.close(),
  die: () => process.exit(7),
};

export type HolderApi = typeof api;

async function acquire({ key, options }: Request): Promise<bigint> {
  const lock = await locks.acquire(key, options);
  handles.set(key, lock);
  losses.set(key, lossOf(lock));
  return lock.fencingToken;
}

/** Stalls the event loop by waiting, and says what the lock looks like in the very next step. */
function block({ key, ms }: { key: string; ms: number }): Belief {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  return beliefOf(handleOf(key));
}

function handleOf(key: string): LockHandle {
  const lock = handles.get(key);
  if (!lock) throw new Error(`${key} was never acquired here`);
  return lock;
}

/** Asks for `isHeld` first: asking for the signal of a lock that is over would abort it. */
function beliefOf(lock: LockHandle): Belief {
  const at = process.hrtime.bigint();
  const { isHeld, state } = lock;
  return { isHeld, state, throws: throwsLoss(lock), aborted: lock.signal.aborted, at };
}

function throwsLoss(lock: LockHandle): boolean {
  try {
    lock.throwIfLost();
    return false;
  } catch {
    return true;
  }
}

function lossOf({ signal }: LockHandle): Promise<Loss> {
  return new Promise((resolve) => {
    signal.addEventListener('abort', () => {
      resolve({ at: process.hrtime.bigint(), reason: String(signal.reason) });
    });
  });
}

serve(api);
