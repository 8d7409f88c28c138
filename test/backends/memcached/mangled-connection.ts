import type { Commands } from '../../../lib/backends/memcached/transport/pipeline.js';
import type { MemcachedConnection } from '../../../lib/backends/memcached/transport/connection.js';
import { MemcachedError } from '../../../lib/backends/memcached/error.js';
import { Pipeline } from '../../../lib/backends/memcached/transport/pipeline.js';
import { mangle } from './mangled.js';
import type { ModelServer } from './model-server.js';
import type { Random } from '../../support/random.js';

/** A connection to the model whose answers arrive with a fault; what has not arrived then never does. */
export class MangledConnection implements Pick<MemcachedConnection, 'exchange'> {
  readonly #pipeline = new Pipeline();
  #outbox = '';
  #lost = false;

  constructor(
    private readonly server: ModelServer,
    private readonly fault: string,
    private readonly random: Random,
  ) {}

  exchange<Results extends readonly unknown[]>(...commands: Commands<Results>): Promise<Results> {
    if (this.#lost) return Promise.reject(new MemcachedError('not-sent', 'lost'));
    if (this.#outbox === '') queueMicrotask(() => this.#flush());
    this.#outbox += commands.map(({ text }) => text).join('');
    return this.#pipeline.expectReplies(commands, 0);
  }

  #flush(): void {
    const answers = this.server.answer(this.#outbox).map((answer) => Buffer.from(answer).toString('latin1'));
    this.#outbox = '';
    try {
      for (const chunk of mangle(this.fault, answers, this.random)) this.#pipeline.receive(chunk);
      if (this.#pipeline.oldestSentAt !== undefined) throw new MemcachedError('unknown', 'no answer');
    } catch (error) {
      this.#lost = true;
      this.#pipeline.fail(error);
    }
  }
}
