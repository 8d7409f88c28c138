import { randomUUID } from 'node:crypto';
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** `held` marks an instant at which the holder was told that it holds, `lost` the one at which it was told that it does not. */
export type OperationKind = 'acquire' | 'renew' | 'release' | 'held' | 'lost' | 'write';

export interface Operation {
  readonly proc: string;
  readonly key: string;
  readonly op: OperationKind;
  /** The acquisition that this belongs to: used for one acquire and for all that follows from it. */
  readonly owner: string;
  /** Monotonic nanoseconds, comparable between the processes of one machine. */
  readonly inv: bigint;
  /** When it was known to have happened. Neither `ok` nor `fail`: it may have happened, at any time since `inv`. */
  readonly ok?: bigint;
  /** When it was known not to have happened. */
  readonly fail?: bigint;
  readonly token?: bigint;
}

export interface Invocation {
  readonly key: string;
  readonly op: OperationKind;
  /** @default a new one */
  readonly owner?: string;
  readonly token?: bigint;
}

/** An operation under way. Without a verdict it stays unknown, as does one whose process is killed. */
export interface OpenOperation {
  readonly owner: string;
  /** `at`: a time read after it had happened, for a process that may be stopped at any step. @default now */
  ok(result?: { readonly token?: bigint; readonly at?: bigint }): void;
  fail(): void;
}

/** How a history is written: each operation is one line when it begins, and one more when its outcome is known. */
type Line =
  | ({ readonly id: string; readonly proc: string; readonly key: string; readonly op: OperationKind } & Readonly<
      Record<'owner' | 'inv', string>
    > & { readonly token?: string })
  | { readonly of: string; readonly ok?: string; readonly fail?: string; readonly token?: string };

/**
 * Appends what one process does to a file of JSON lines. Every line is handed to the kernel before the call returns, so
 * that SIGKILL loses nothing that was recorded.
 */
export class HistoryRecorder {
  readonly #file: number;
  readonly #proc: string;
  #operations = 0;

  constructor(path: string, proc = String(process.pid)) {
    this.#file = openSync(path, 'a');
    this.#proc = proc;
  }

  /** To be called right before the operation begins. */
  invoke({ key, op, owner = randomUUID(), token }: Invocation): OpenOperation {
    const id = this.#begin(key, op, owner, token, process.hrtime.bigint());
    return {
      owner,
      ok: (result) =>
        this.#write({ of: id, ok: String(result?.at ?? process.hrtime.bigint()), ...tokenField(result?.token) }),
      fail: () => this.#write({ of: id, fail: now() }),
    };
  }

  /** Notes an instant. @param at a time read *before* asking, say, `isHeld` (@default now) */
  mark({ key, op, owner = randomUUID(), token }: Invocation, at = process.hrtime.bigint()): void {
    this.#begin(key, op, owner, token, at);
  }

  close(): void {
    closeSync(this.#file);
  }

  #begin(key: string, op: OperationKind, owner: string, token: bigint | undefined, at: bigint): string {
    const id = `${this.#proc}/${(this.#operations += 1)}`;
    this.#write({ id, proc: this.#proc, key, op, owner, inv: String(at), ...tokenField(token) });
    return id;
  }

  #write(line: Line): void {
    writeSync(this.#file, `${JSON.stringify(line)}\n`);
  }
}

/**
 * Reads the histories of all processes into one, in the order of invocation. A last line torn by SIGKILL is left out.
 * @throws SyntaxError when any other line is broken
 */
export function loadHistory(paths: readonly string[]): Operation[] {
  const operations = paths.flatMap((path) => [...parse(readFileSync(path, 'utf8')).values()]);
  return operations.toSorted((a, b) => Number(a.inv - b.inv));
}

function parse(text: string): Map<string, Operation> {
  const operations = new Map<string, Operation>();
  for (const json of text.split('\n').slice(0, -1)) {
    const line = JSON.parse(json) as Line;
    const token = line.token === undefined ? {} : { token: BigInt(line.token) };
    if ('id' in line) {
      const { proc, key, op, owner, inv } = line;
      operations.set(line.id, { proc, key, op, owner, inv: BigInt(inv), ...token });
      continue;
    }
    const begun = operations.get(line.of);
    if (begun === undefined) throw new SyntaxError(`An outcome of an operation that never began: ${json}`);
    const outcome = line.ok === undefined ? { fail: BigInt(line.fail ?? 0) } : { ok: BigInt(line.ok) };
    operations.set(line.of, { ...begun, ...outcome, ...token });
  }
  return operations;
}

function now(): string {
  return String(process.hrtime.bigint());
}

function tokenField(token: bigint | undefined): { readonly token?: string } {
  return token === undefined ? {} : { token: String(token) };
}
