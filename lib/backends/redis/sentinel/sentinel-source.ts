import type { ReportedHealth } from '../../../core/index.js';
import { makeOwnClient, reconnectDelayMs, tlsOptions } from '../connection/own-client.js';
import type { ClientSource } from '../connection/redis-client.js';
import { toLoggableError } from '../error.js';
import { createLoginSource, type Login, type LoginSource, type RedisAddress } from '../access-options.js';
import type { RedisSentinelOptions } from '../options.js';

const SENTINEL_PORT = 26_379;
/** Time after which a Sentinel that does not answer is skipped for the next one. */
const SENTINEL_TIMEOUT_MS = 1_000;

interface SentinelLogin extends Login {
  readonly sentinelUsername: string | undefined;
  readonly sentinelPassword: string | undefined;
}

/** Returns a source of connections to the Sentinels' master: https://redis.io/docs/latest/develop/reference/sentinel-clients/ */
export function createSentinelSource(options: RedisSentinelOptions): ClientSource {
  return {
    makeClient: () => makeOwnClient(masterOptions(options), createSentinelLoginSource(options), 'sentinels'),
    watchMaster: (health, onNewMaster) => {
      let lastMessage = '';
      // Each Sentinel announces the same switch.
      const onMessage = (message: string): void => {
        if (message !== lastMessage) onNewMaster();
        lastMessage = message;
      };
      const stops = options.sentinels.map((address) => watchSentinel(address, options, health, onMessage));
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
    // The client must always retry: without a delay it would give up for good.
    sentinelRetryStrategy: reconnectDelayMs,
  };
}

/** Returns the logins of a client at the master and at the Sentinels. */
function createSentinelLoginSource({ credentials, sentinelCredentials }: RedisSentinelOptions): LoginSource {
  const masterLogin = createLoginSource('credentials', credentials);
  const sentinelLogin = createLoginSource('sentinelCredentials', sentinelCredentials);
  const combine = (login: Login, { username, password }: Login): SentinelLogin => ({
    ...login,
    sentinelUsername: username,
    sentinelPassword: password,
  });
  if (typeof masterLogin !== 'function' && typeof sentinelLogin !== 'function')
    return combine(masterLogin, sentinelLogin);
  return async () => combine(await resolveLogin(masterLogin), await resolveLogin(sentinelLogin));
}

async function resolveLogin(login: LoginSource): Promise<Login> {
  return typeof login === 'function' ? login() : login;
}

/**
 * Subscribes to one Sentinel, and calls `onMessage` when it has switched the master. The `failoverDetector` of ioredis
 * is not used: it prints the failures of these connections. If a switch comes while the client looks for the master,
 * the detector also ends the client for good.
 * @returns function that ends the subscription
 */
function watchSentinel(
  { host, port = SENTINEL_PORT }: RedisAddress,
  { name, sentinelCredentials, sentinelTls }: RedisSentinelOptions,
  health: ReportedHealth,
  onMessage: (message: string) => void,
): () => void {
  const topic = `Sentinel ${host}:${port}`;
  const onError = (error: unknown): void => health.setAdvice(topic, `${topic}: ${toLoggableError(error).message}`);
  const login = createLoginSource('sentinelCredentials', sentinelCredentials);
  let isStopped = false;
  const makingClient = makeOwnClient({ host, port, tls: tlsOptions(sentinelTls) }, login, 'sentinels').then(
    (client) => {
      client.on('error', onError);
      client.on('ready', () => {
        health.setAdvice(topic, undefined);
        client.call('subscribe', '+switch-master').catch(onError);
      });
      client.on('message', (_channel, text) => String(text).startsWith(`${name} `) && onMessage(String(text)));
      if (!isStopped) client.connect().catch(() => undefined);
      return client;
    },
  );
  // The connection for commands reports that ioredis is not installed.
  makingClient.catch(() => undefined);
  return () => {
    isStopped = true;
    makingClient.then((client) => client.disconnect()).catch(() => undefined);
  };
}
