import { randomUUID } from 'node:crypto';
import { failureKindOf, isLockError, LockConfigurationError, type ReportedHealth } from '../../core/index.js';
import type { RedisCommand } from '../redis/connection/redis-client.js';

type SendCommand = (command: RedisCommand) => Promise<unknown>;

interface IdentifiableNode {
  readonly name: string;
  readonly health: ReportedHealth;
  readonly sendCommand: SendCommand;
}

/** Time for which a server keeps the identity that a client has given it. It begins anew with each identification. */
const ASSIGNED_IDENTITY_TTL_MS = 3_600_000;

/** Identities of the servers behind the nodes of one backend. A server with two names would have two votes. */
export class ServerIdentities {
  readonly #identificationPromiseByNode = new Map<string, Promise<void>>();
  readonly #identityByNode = new Map<string, string>();
  readonly #assignedIdentityKey: string;

  constructor(prefix: string) {
    this.#assignedIdentityKey = `${prefix}:server`;
  }

  /**
   * Asks the server of the node for its identity, once for each connection.
   * @throws LockConfigurationError when another node is the same server
   */
  assertUnique(node: IdentifiableNode): Promise<void> {
    const identificationPromise = this.#identificationPromiseByNode.get(node.name) ?? this.#identify(node);
    this.#identificationPromiseByNode.set(node.name, identificationPromise);
    return identificationPromise;
  }

  /** Must be called when the connection is lost: the name may lead to another server afterwards. */
  forget(nodeName: string): void {
    this.#identificationPromiseByNode.delete(nodeName);
    this.#identityByNode.delete(nodeName);
  }

  async #identify(node: IdentifiableNode): Promise<void> {
    const { name, health, sendCommand } = node;
    try {
      const identity = (await readRunId(node)) ?? (await this.#readOrAssignIdentity(sendCommand));
      const [matchingName] = [...this.#identityByNode].find(([, otherIdentity]) => otherIdentity === identity) ?? [];
      if (matchingName !== undefined && matchingName !== name) throw createSameServerError([matchingName, name]);
      this.#identityByNode.set(name, identity);
      health.setAdvice('identity', undefined);
    } catch (error) {
      this.forget(name);
      if (isLockError(error)) health.setAdvice('identity', error.message);
      throw error;
    }
  }

  /** Resolves to the identity that a client has given the server. Gives it one if there is none. */
  async #readOrAssignIdentity(send: SendCommand): Promise<string> {
    await send(['SET', this.#assignedIdentityKey, randomUUID(), 'NX', 'PX', ASSIGNED_IDENTITY_TTL_MS]);
    await send(['PEXPIRE', this.#assignedIdentityKey, ASSIGNED_IDENTITY_TTL_MS]);
    return String(await send(['GET', this.#assignedIdentityKey]));
  }
}

/** Resolves to `undefined` when this user may not use `INFO`, or when its reply has no run ID like that of Redis. */
async function readRunId({ health, sendCommand }: IdentifiableNode): Promise<string | undefined> {
  try {
    return /^run_id:(?<runId>(?=0*[1-9a-f])[0-9a-f]{40})/mu.exec(String(await sendCommand(['INFO', 'server'])))
      ?.groups?.['runId'];
  } catch (error) {
    if (failureKindOf(error) === 'silent' || health.current.status === 'down') throw error;
    return undefined;
  }
}

function createSameServerError(names: readonly string[]): LockConfigurationError {
  return new LockConfigurationError(
    `${names.toSorted().join(' and ')} are the same server, which would have two votes: give each server once`,
    'nodes',
  );
}
