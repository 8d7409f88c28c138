import { isIP } from 'node:net';
import type { ReportedHealth } from '../../../core/index.js';
import { createLoginSource, type RedisAddress } from '../access-options.js';
import { rotate, tlsOptions } from '../clients/client-settings.js';
import { type RedisClientPackage, loadClientMaker } from '../clients/own-client.js';
import type { ClientSource, RedisClient } from '../connection/redis-client.js';
import { toLoggableError } from '../error.js';
import type { RedisSentinelOptions } from '../options.js';

const SENTINEL_PORT = 26_379;

export function createSentinelSource(options: RedisSentinelOptions, clientPackage?: RedisClientPackage): ClientSource {
  const { name, db, natMap, tls, sentinelTls } = options;
  const sentinels = options.sentinels.map(({ host, port = SENTINEL_PORT }) => ({ host, port }));
  const location = { name, db, natMap, tls: tlsOptions(tls), sentinels, sentinelTls: tlsOptions(sentinelTls) };
  const login = createLoginSource('credentials', options.credentials);
  const sentinelLogin = createLoginSource('sentinelCredentials', options.sentinelCredentials);
  let clientCount = 0;
  return {
    makeClient: async () => {
      const maker = await loadClientMaker(clientPackage, 'sentinels');
      const sentinelsInOrder = rotate(sentinels, clientCount++);
      return maker.makeMasterClient({ ...location, sentinels: sentinelsInOrder }, login, sentinelLogin);
    },
    watchMaster: (health, onNewMaster) => {
      let lastMessage = '';
      // Each Sentinel announces the switch. A Sentinel that does not know of the switch yet leads clients to the former
      // master: a repeated announcement may therefore be needed.
      const onSwitchMessage = (message: string): void => {
        const isRepeated = message === lastMessage;
        lastMessage = message;
        const [announcedHost = '', announcedPort] = message.split(' ').slice(-2);
        const announcedAddress = { host: announcedHost, port: Number(announcedPort) };
        const address = natMap?.[`${announcedHost}:${announcedPort}`] ?? announcedAddress;
        // A client of ioredis does not tell to which host name it is connected. A repetition would end a good
        // connection.
        if (!isRepeated || isIP(address.host) !== 0) onNewMaster(address);
      };
      const makeClient = async (address: Required<RedisAddress>) =>
        (await loadClientMaker(clientPackage, 'sentinels')).makeClient(
          { ...address, tls: location.sentinelTls },
          sentinelLogin,
        );
      const stopFunctions = sentinels.map((address) =>
        watchSentinel(address, name, makeClient(address), health, onSwitchMessage),
      );
      return () => stopFunctions.forEach((stop) => stop());
    },
  };
}

/**
 * Calls `onSwitchMessage` when the Sentinel announces a new master, until the returned function is called. Replaces the
 * `failoverDetector` of ioredis, which prints failures of its connections. That detector also ends a client for good if
 * the switch comes while the client looks for the master.
 */
function watchSentinel(
  { host, port }: Required<RedisAddress>,
  name: string,
  clientPromise: Promise<RedisClient>,
  health: ReportedHealth,
  onSwitchMessage: (message: string) => void,
): () => void {
  const adviceTopic = `Sentinel ${host}:${port}`;
  const onError = (error: unknown): void =>
    health.setAdvice(adviceTopic, `${adviceTopic}: ${toLoggableError(error).message}`);
  let isStopped = false;
  const watchingClientPromise = clientPromise.then((client) => {
    client.on('error', onError);
    client.on('ready', () => {
      health.setAdvice(adviceTopic, undefined);
      client.call('subscribe', '+switch-master').catch(onError);
    });
    client.on('message', (_channel, text) => String(text).startsWith(`${name} `) && onSwitchMessage(String(text)));
    if (!isStopped) client.connect().catch(() => undefined);
    return client;
  });
  // If no client package is installed, the connection for commands reports that error.
  watchingClientPromise.catch(() => undefined);
  return () => {
    isStopped = true;
    watchingClientPromise.then((client) => client.disconnect()).catch(() => undefined);
  };
}
