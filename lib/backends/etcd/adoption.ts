import { isDatabaseFull } from './error.js';
import { readHolderEntry } from './readings.js';
import type { QueueEntryContext } from './queue-entry.js';
import { type EtcdSession, revokeInBackground } from './session.js';
import type { KeyValue } from './transport/messages.js';
import type { OnSend } from './transport/request-line.js';

const MAX_ATTEMPTS = 5;

export interface EntryAdoption {
  readonly key: string;
  readonly formerOwner: string;
  readonly owner: string;
  /** Value of the entry for `owner`. */
  readonly value: string;
}

/**
 * Moves the entry of a former owner to the lease of this session, with a new value. The entry keeps its place in the
 * queue and its creation revision. The transaction requires that the session's own key is unchanged, so that a request
 * that is carried out late has no effect: see `QueueEntry`.
 * Resolves to the entry, or to `undefined` if the former owner has none.
 */
export async function adoptEntry(
  context: QueueEntryContext,
  session: EtcdSession,
  { key, formerOwner, owner, value }: EntryAdoption,
  onSend: OnSend,
): Promise<KeyValue | undefined> {
  const { client, names } = context;
  const { lease } = session;
  const sessionKeyName = names.sessionKeyName(lease);
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    // The entry already belongs to `owner` if an earlier try was carried out without an answer.
    const entry = (await readHolderEntry(context, key, formerOwner)) ?? (await readHolderEntry(context, key, owner));
    if (!entry) return undefined;
    const { succeeded, firstKeyValues } = await client.transact(
      {
        when: [
          { key: entry.key, modRevision: entry.modRevision },
          { key: sessionKeyName, modRevision: session.sessionKeyRevision },
        ],
        steps: [{ put: entry.key, value, lease }],
        otherwise: [{ get: sessionKeyName }],
      },
      onSend,
    );
    if (succeeded) {
      if (entry.lease !== lease) revokeInBackground(client, entry.lease);
      return entry;
    }
    session.sessionKeyRevision = firstKeyValues[0]?.modRevision ?? 0n;
  }
  throw new Error(`others changed the entry of the key ${MAX_ATTEMPTS} times meanwhile`);
}

/** Undoes an adoption whose request got no answer. The server may have carried out the request, or may still do so. */
export async function undoAdoption(
  context: QueueEntryContext,
  session: EtcdSession,
  key: string,
  owner: string,
): Promise<void> {
  const { client } = context;
  try {
    const { revision } = await client.transact({ steps: [session.sessionKeyStep] });
    session.recordSessionKeyRevision(revision);
  } catch (error) {
    session.endIfLeaseMissing(error);
    // If the lease is gone, the server deleted an adopted entry with it, and refuses a late request under this lease.
    if (session.endSignal.aborted) return;
    // A full server adopts no entry any more, so the deletion below is enough.
    if (!isDatabaseFull(error)) throw error;
  }
  const entry = await readHolderEntry(context, key, owner);
  if (!entry) return;
  const { key: name, modRevision } = entry;
  await client.transact({ when: [{ key: name, modRevision }], steps: [{ remove: name }] });
}
