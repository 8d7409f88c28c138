import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE_HEADER = 16;
const TXN_HEADER = 32;
const TYPE_AT = 28;
/** `create` and `create2`, whose transactions look alike. */
const CREATE_TYPES: ReadonlySet<number> = new Set([1, 15]);

/**
 * Has a server that is down believe that a node has had so many children: writes the number into the last transaction of its
 * log that created one, as that server would have done after so many creations.
 */
export function raiseSequence(dataDirectory: string, parent: string, sequence: number): void {
  const directory = join(dataDirectory, 'version-2');
  let raised = 0;
  for (const name of readdirSync(directory).filter((file) => file.startsWith('log.'))) {
    const file = join(directory, name);
    const log = readFileSync(file);
    for (let at = FILE_HEADER; at + 12 <= log.length && log.readInt32BE(at + 8) > 0;) {
      const entry = log.subarray(at + 12, at + 12 + log.readInt32BE(at + 8));
      if (raiseIn(entry, parent, sequence)) {
        log.writeBigInt64BE(BigInt(adler32(entry)), at);
        raised += 1;
      }
      at += 12 + entry.length + 1;
    }
    writeFileSync(file, log);
  }
  if (raised === 0) throw new Error(`no child of ${parent} was ever created`);
}

/** Whether this is the creation of a child of `parent`. https://zookeeper.apache.org, `TxnHeader` and `CreateTxn` */
function raiseIn(entry: Buffer, parent: string, sequence: number): boolean {
  if (!CREATE_TYPES.has(entry.readInt32BE(TYPE_AT))) return false;
  let at = TXN_HEADER;
  const skipText = (): Buffer => {
    const length = Math.max(entry.readInt32BE(at), 0);
    const text = entry.subarray(at + 4, at + 4 + length);
    at += 4 + length;
    return text;
  };
  const path = skipText().toString();
  skipText();
  const entries = entry.readInt32BE(at);
  at += 4;
  for (let i = 0; i < entries; i += 1) {
    at += 4;
    skipText();
    skipText();
  }
  if (!path.startsWith(`${parent}/`)) return false;
  entry.writeInt32BE(sequence, at + 1);
  return true;
}

function adler32(bytes: Buffer): number {
  let [a, b] = [1, 0];
  for (const byte of bytes) {
    a = (a + byte) % 65_521;
    b = (b + a) % 65_521;
  }
  return b * 65_536 + a;
}
