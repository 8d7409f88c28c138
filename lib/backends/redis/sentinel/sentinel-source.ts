import type { ReportedHealth } from '../../../core/index.js';
import { makeClient, reconnectDelay, tlsOptions } from '../connection/client-factory.js';
import type { ClientSource } from '../connection/redis-client.js';
import { cleanError } from '../error.js';
import { type Login, loginBy, type LoginSource, type RedisAddress } from '../access-options.js';
import type { RedisSentinelOptions } from '../options.js';

const SENTINEL_PORT = 26_379;
/** A Sentinel that does not answer within this time is passed over for the next. */
const SENTINEL_TIMEOUT_MS = 1_000;

interface SentinelLogin extends Login {
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
}

/** Connections to the Sentinels' master: https://redis.io/docs/latest/develop/reference/sentinel-clients/ */
export function sentinelSource(options: RedisSentinelOptions): ClientSource {
  return {
    open: () => makeClient(masterOptions(options), loginOf(options), 'sentinels'),
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
  const { name, db, natMap } = options;
  const tls = tlsOptions(options.tls);
  return {
    name,
    db,
    natMap,
    tls,
    enableTLSForSentinelMode: tls !== undefined,
    sentinels: options.sentinels.map(({ host, port = SENTINEL_PORT }) => ({ host, port })),
    sentinelTLS: tlsOptions(options.sentinelTls),
    connectTimeout: SENTINEL_TIMEOUT_MS,
    sentinelCommandTimeout: SENTINEL_TIMEOUT_MS,
    // Without a number it would give up for good.
    sentinelRetryStrategy: reconnectDelay,
  };
}

/** Returns how a client logs in at the master, and at the Sentinels that lead to it. */
function loginOf({ credentials, sentinelCredentials }: RedisSentinelOptions): LoginSource {
  const [atMaster, atSentinels] = [
    loginBy('credentials', credentials),
    loginBy('sentinelCredentials', sentinelCredentials),
  ];
  const together = (login: Login, { username, password }: Login): SentinelLogin => ({
    ...login,
    sentinelUsername: username,
    sentinelPassword: password,
  });
  if (typeof atMaster !== 'function' && typeof atSentinels !== 'function') return together(atMaster, atSentinels);
  return async () => together(await answerOf(atMaster), await answerOf(atSentinels));
}

async function answerOf(login: LoginSource): Promise<Login> {
  return typeof login === 'function' ? login() : login;
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
  const login = loginBy('sentinelCredentials', sentinelCredentials);
  let stopped = false;
  const watching = makeClient({ host, port, tls: tlsOptions(sentinelTls) }, login, 'sentinels').then((client) => {
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
