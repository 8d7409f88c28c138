import type { Query } from '../connections/query.js';
import { type Address, idIn, type Sockets, streamIn, type StreamSetting } from '../connections/sockets.js';

type Answer = Awaited<ReturnType<Query>>;

/** The driver writes bytes in hexadecimal: safe in every SQL mode, the same in every character set of the connection. */
export const bytesOf = (text: string): Buffer => Buffer.from(text);

/** Whether the statement changed its one row. */
export function changed([answer]: Answer): boolean {
  return Number(answer?.['affectedRows']) === 1;
}

/** The value of `last_insert_id(…)` in a statement that changed its row. */
export function insertedId(answer: Answer): bigint | undefined {
  return changed(answer) ? BigInt(String(answer[0]?.['insertId'])) : undefined;
}

/** The session's id, as we were told in the handshake. */
export const handshakeId = (client: unknown): string | undefined => idIn(client, 'threadId');

/**
 * Returns the options of a driver whose rows are as our statements expect them, whatever the application told its own.
 */
export function answersAsExpected(sockets: Sockets, extra: unknown, setting: StreamSetting): object {
  const given = streamIn(extra);
  return {
    rowsAsArray: false,
    nestTables: false,
    namedPlaceholders: false,
    typeCast: true,
    stream: (options: { readonly config: Address }) =>
      given ? sockets.adopt(given(options), setting) : sockets.connect(options.config),
  };
}
