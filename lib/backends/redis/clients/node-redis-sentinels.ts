import { systemClock, isFulfilledWithin } from '../../../core/index.js';
import type { RedisAddress } from '../access-options.js';
import { toLoggableError } from '../error.js';
import { type MasterLocation, SENTINEL_TIMEOUT_MS } from './client-settings.js';
import { callNodeRedis } from './node-redis-command.js';
import type { NodeRedisClient } from './node-redis-types.js';
import { endNodeRedis } from './own-node-redis.js';

type SentinelClientMaker = (address: Required<RedisAddress>, signal: AbortSignal) => NodeRedisClient;

/** @throws when no Sentinel knows the master: https://redis.io/docs/latest/develop/reference/sentinel-clients/ */
export async function findMasterAddress(
  { sentinels, name, natMap }: Pick<MasterLocation, 'sentinels' | 'name' | 'natMap'>,
  makeClient: SentinelClientMaker,
): Promise<Required<RedisAddress>> {
  let failureReason = `they do not know the master "${name}"`;
  for (const sentinel of sentinels) {
    try {
      const reply = await askForMasterAddress(name, (signal) => makeClient(sentinel, signal));
      if (!Array.isArray(reply)) continue;
      const [host, port] = reply.map(String);
      return natMap?.[`${host}:${port}`] ?? { host: String(host), port: Number(port) };
    } catch (error) {
      failureReason = toLoggableError(error).message;
    }
  }
  throw new Error(`no Sentinel gives the address of the master: ${failureReason}`);
}

/** Resolves to host and port, or to `null` when the Sentinel does not know the master. */
async function askForMasterAddress(name: string, makeClient: (signal: AbortSignal) => NodeRedisClient) {
  const abortController = new AbortController();
  const client = makeClient(abortController.signal);
  const connectAndAsk = async (): Promise<unknown> => {
    const clientFailure = new Promise((_, reject) => client.on('error', reject));
    const masterReply = client.connect().then(() => callNodeRedis(client, 'SENTINEL', 'get-master-addr-by-name', name));
    return Promise.race([clientFailure, masterReply]);
  };
  try {
    let reply: unknown;
    const isAnswered = await isFulfilledWithin(
      systemClock,
      SENTINEL_TIMEOUT_MS,
      connectAndAsk().then((answer) => void (reply = answer)),
    );
    if (!isAnswered) throw new Error(`no answer within ${SENTINEL_TIMEOUT_MS} ms`);
    return reply;
  } finally {
    endNodeRedis(client, abortController);
  }
}
