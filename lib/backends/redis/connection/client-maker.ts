import type { RedisOptions } from 'ioredis';
import { pause, systemClock } from '../../../core/index.js';
import type { Login, LoginSource } from '../access-options.js';
import type { RedisClient } from './redis-client.js';

/** Pause after a login that could not be asked for. */
const RETRY_MS = 500;

type ClientOptions = Omit<RedisOptions, 'replyMapping'>;

/** Makes a client of ioredis. */
export type ClientMaker = (options: ClientOptions, login: LoginSource) => RedisClient;

let loading: Promise<ClientMaker> | undefined;

/** Loads ioredis. Rejects when it is not installed. */
export function loadClientMaker(): Promise<ClientMaker> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(): Promise<ClientMaker> {
  const { Redis } = await import('ioredis');

  /** A client that asks for its login anew before each attempt to connect. */
  class LoginRedis extends Redis {
    #isOver = false;

    constructor(
      options: ClientOptions,
      private readonly login: () => Promise<Login>,
    ) {
      super(options);
    }

    override async connect(): Promise<void> {
      this.#isOver = false;
      while (!this.#isOver) {
        try {
          Object.assign(this.options, await this.login());
          break;
        } catch (error) {
          this.emit('error', error);
          await pause(systemClock, RETRY_MS, { background: true });
        }
      }
      if (!this.#isOver) await super.connect();
    }

    override disconnect(reconnect = false): void {
      this.#isOver = !reconnect;
      super.disconnect(reconnect);
    }
  }

  return (options, login) =>
    typeof login === 'function' ? new LoginRedis(options, login) : new Redis({ ...options, ...login });
}
