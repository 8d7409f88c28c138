import type { ReportedHealth } from '../../../core/index.js';
import { makeClient, reconnectDelay, tlsOptions } from '../connection/client-factory.js';
import type { ClientSource } from '../connection/redis-client.js';
import { cleanError } from '../error.js';
import type { RedisAddress, RedisSentinelOptions } from '../options.js';

const SENTINEL_PORT = 26_379;
/** A Sentinel that does not answer within this time is passed over for the next. */
const SENTINEL_TIMEOUT_MS = 1_000;

/** Connections to the Sentinels' master: https://redis.io/docs/latest/develop/reference/sentinel-clients/ */
export function sentinelSource(options: RedisSentinelOptions): ClientSource {
  return {
    open: () => makeClient(masterOptions(options), 'sentinels'),
    watchMaster: (health, onSwitch) => {
      let last = '';
      // Each Sentinel tells of the same switch.
      const onNews = (switched: string): void => {
        if (switched !== last) onSwitch();
        last = switched;
      };
      const stops = options.sentinels.map((address) => watchSentinel(address, options, health, onNews));
      return () => stops.forEach((stop) => stop());
    },
  };
}

function masterOptions(options: RedisSentinelOptions): object {
  const { name, credentials, db, natMap, sentinelCredentials } = options;
  const tls = tlsOptions(options.tls);
  return {
    name,
    ...credentials,
    db,
    natMap,
    tls,
    enableTLSForSentinelMode: tls !== undefined,
    sentinels: options.sentinels.map(({ host, port = SENTINEL_PORT }) => ({ host, port })),
    sentinelUsername: sentinelCredentials?.username,
    sentinelPassword: sentinelCredentials?.password,
    sentinelTLS: tlsOptions(options.sentinelTls),
    connectTimeout: SENTINEL_TIMEOUT_MS,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // Without a number it would give up for good.
    sentinelRetryStrategy: reconnectDelay,
  };
}

/**
 * A connection to one Sentinel, which tells when it has switched masters. The `failoverDetector` of ioredis prints the
 * failures of these connections, and ends the client for good if the switch comes while it looks for the master.
 */
function watchSentinel(
  { host, port = SENTINEL_PORT }: RedisAddress,
  { name, sentinelCredentials, sentinelTls }: RedisSentinelOptions,
  health: ReportedHealth,
  onSwitch: (switched: string) => void,
): () => void {
  const topic = `Sentinel ${host}:${port}`;
  const complain = (error: unknown): void => health.advise(topic, `${topic}: ${cleanError(error).message}`);
  const access = { ...sentinelCredentials, tls: tlsOptions(sentinelTls) };
  let stopped = false;
  const watching = makeClient({ host, port, ...access }, 'sentinels').then((client) => {
    client.on('error', complain);
    client.on('ready', () => {
      health.advise(topic, undefined);
      client.call('subscribe', '+switch-master').catch(complain);
    });
    client.on('message', (_channel, text) => String(text).startsWith(`${name} `) && onSwitch(String(text)));
    if (!stopped) client.connect().catch(() => undefined);
    return client;
  });
  // The connection for commands tells that the package is missing.
  watching.catch(() => undefined);
  return () => {
    stopped = true;
    watching.then((client) => client.disconnect()).catch(() => undefined);
  };
}
