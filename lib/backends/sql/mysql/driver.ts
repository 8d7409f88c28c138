import type { Query } from '../connections/query.js';
import {
  type Address,
  getConnectionId,
  type Sockets,
  getStreamFactory,
  type StreamSetting,
} from '../connections/sockets.js';

type Answer = Awaited<ReturnType<Query>>;

/** Returns the bytes of a text. The driver writes bytes in hexadecimal: safe in every SQL mode and character set. */
export const toBytes = (text: string): Buffer => Buffer.from(text);

/** Returns SQL for the bytes of a text column: the connection's character set may lack some of the characters. */
export const textBytesSql = (column: string): string => `cast(convert(${column} using utf8mb4) as binary)`;

/** Returns the rows with texts in place of bytes. */
export function decodeTexts(rows: Answer): Answer {
  const decode = (value: unknown): unknown => (Buffer.isBuffer(value) ? value.toString() : value);
  return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, decode(value)])));
}

export function hasChangedRow([answer]: Answer): boolean {
  return Number(answer?.['affectedRows']) === 1;
}

/** Returns the value that the statement gave to `last_insert_id(…)`, or `undefined` when it changed no row. */
export function getLastInsertId(answer: Answer): bigint | undefined {
  return hasChangedRow(answer) ? BigInt(String(answer[0]?.['insertId'])) : undefined;
}

export const getHandshakeId = (client: unknown): string | undefined => getConnectionId(client, 'threadId');

/** Returns driver options that watch the sockets, and override options by which rows would have no column names. */
export function createDriverOptions(sockets: Sockets, applicationOptions: unknown, setting: StreamSetting): object {
  const streamFactory = getStreamFactory(applicationOptions);
  return {
    rowsAsArray: false,
    nestTables: false,
    namedPlaceholders: false,
    typeCast: true,
    stream: (options: { readonly config: Address }) =>
      streamFactory ? sockets.watchStream(streamFactory(options), setting) : sockets.connect(options.config),
  };
}
