import { isReply } from '../error.js';
import type { RedisClient } from './redis-client.js';

/** Tells a client of ioredis what it learned of the server, or why the connection is of no use. */
type OnChecked = (error: unknown, info?: object) => void;

/**
 * Has an own client of ioredis count as ready when its server has put it into its database. ioredis goes on in database 0
 * where `SELECT` fails, as on a server that is busy, and others would hold the same keys elsewhere. Its own check needs
 * INFO, which some servers do not have. Without any check version 5 takes a connection that ended during its handshake
 * for one that is ready, and never makes another one: https://github.com/redis/ioredis/issues/2099
 */
export function checkingDatabase<Client extends RedisClient>(client: Client): Client {
  const check = async (onChecked: OnChecked): Promise<void> => {
    const { db = 0 } = client.options ?? {};
    try {
      // In lower case: the versions of ioredis send it before they are ready by this name.
      await client.call('select', db);
    } catch (error) {
      // Database 0 needs no right to choose it.
      if (db !== 0 || !isReply(error) || error.message.startsWith('NOAUTH')) return onChecked(error);
    }
    onChecked(undefined, {});
  };
  Reflect.set(client, '_readyCheck', (onChecked: OnChecked) => void check(onChecked));
  return client;
}
