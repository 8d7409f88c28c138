import { join } from 'node:path';
import { eventually, Holder, type RedisConnection } from '../support/index.js';
import type { FencedResource } from '../support/fenced-resource.js';

const TTL_MS = 500;
const SLICE_MS = 400;

/** Processes that each hammer a key, and write under its lock, until they are told to stop. */
export class Crowd {
  /** Their histories. */
  readonly files: string[] = [];
  #over = false;

  constructor(
    private readonly connection: RedisConnection,
    /** One for each process. */
    private readonly keys: readonly string[],
    private readonly directory: string,
    private readonly resourceUrl: string,
  ) {}

  /** Resolves when all have stopped. Rejects with what goes wrong in any of them. */
  async run(): Promise<void> {
    await Promise.all(this.keys.map((key, place) => this.#process(key, place)));
  }

  stop(): void {
    this.#over = true;
  }

  async #process(key: string, place: number): Promise<void> {
    await using holder = await Holder.start(this.connection);
    for (let slice = 0; !this.#over; slice += 1) {
      const proc = `p${place}-${slice}`;
      const history = join(this.directory, `${proc}.jsonl`);
      this.files.push(history);
      const how = { keys: [key], ms: SLICE_MS, callers: 4, ttlMs: TTL_MS, history, proc };
      await holder.child.call('hammer', { ...how, resource: this.resourceUrl });
    }
    await holder.close();
    await expectQuietEnd(holder);
  }
}

/** Whatever the servers did, nothing went unhandled, and nothing keeps the process alive. */
async function expectQuietEnd(holder: Holder): Promise<void> {
  const { code, signal } = await holder.exit();
  if (code !== 0 || holder.child.stderr !== '') throw new Error(`ended with ${signal ?? code}: ${holder.child.stderr}`);
}

/** Resolves once `count` more writes to the key have been accepted. */
export async function moreWrites(resource: FencedResource, key: string, count: number): Promise<void> {
  const accepted = async (): Promise<number> => (await resource.writes(key)).filter((write) => write.accepted).length;
  const before = await accepted();
  await eventually(async () => (await accepted()) >= before + count, { withinMs: 25_000, everyMs: 25 });
}
