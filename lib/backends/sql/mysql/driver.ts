import type { Query } from '../connections/query.js';
import {
  type Address,
  getConnectionId,
  type Sockets,
  getStreamFactory,
  type StreamSetting,
} from '../connections/sockets.js';

type Answer = Awaited<ReturnType<Query>>;

/** Returns a text as bytes, which the driver writes in hexadecimal: safe in every SQL mode and every character set. */
export const toBytes = (text: string): Buffer => Buffer.from(text);

/** Returns whether the statement changed its one row. */
export function hasChangedRow([answer]: Answer): boolean {
  return Number(answer?.['affectedRows']) === 1;
}

/** Returns the value of `last_insert_id(…)` in a statement; `undefined` when it changed no row. */
export function getLastInsertId(answer: Answer): bigint | undefined {
  return hasChangedRow(answer) ? BigInt(String(answer[0]?.['insertId'])) : undefined;
}

/** Returns the session's id that the server told in the handshake. */
export const getHandshakeId = (client: unknown): string | undefined => getConnectionId(client, 'threadId');

/**
 * Returns driver options that override those of the application. Rows become objects by column names, and `sockets`
 * watches each stream.
 */
export function createDriverOptions(sockets: Sockets, extra: unknown, setting: StreamSetting): object {
  const streamFactory = getStreamFactory(extra);
  return {
    rowsAsArray: false,
    nestTables: false,
    namedPlaceholders: false,
    typeCast: true,
    stream: (options: { readonly config: Address }) =>
      streamFactory ? sockets.watchStream(streamFactory(options), setting) : sockets.connect(options.config),
  };
}
