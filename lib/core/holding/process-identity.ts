import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

export interface Signature {
  /** Ed25519 key, 32 bytes in base64url. */
  readonly publicKey: string;
  readonly signature: string;
}

interface ProcessIdentity {
  readonly name: string;
  readonly publicKey: string;
  readonly privateKey: KeyObject;
}

/** Number of base64url characters of a process name: 132 bits. */
const PROCESS_NAME_LENGTH = 22;

let identity: ProcessIdentity | undefined;
let ownerCount = 0;

/**
 * Returns a new owner, from the name of this process and a counter. The name is a hash of the public key, so that a
 * reader can check who signed a sequencer or a ticket.
 */
export function createOwner(): string {
  ownerCount += 1;
  return `${getIdentity().name}.${ownerCount.toString(36)}`;
}

export function signText(text: string): Signature {
  const { publicKey, privateKey } = getIdentity();
  return { publicKey, signature: sign(null, Buffer.from(text), privateKey).toString('base64url') };
}

/** @throws when `publicKey` is no Ed25519 key */
export function isSignedBy(owner: string, text: string, { publicKey, signature }: Signature): boolean {
  if (!owner.startsWith(`${processNameOf(publicKey)}.`)) return false;
  const verificationKey = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x: publicKey }, format: 'jwk' });
  return verify(null, Buffer.from(text), verificationKey, Buffer.from(signature, 'base64url'));
}

/** Creates the identity at first use, so that loading the module costs nothing. */
function getIdentity(): ProcessIdentity {
  identity ??= createIdentity();
  return identity;
}

function createIdentity(): ProcessIdentity {
  const keyPair = generateKeyPairSync('ed25519');
  const { x: publicKey = '' } = keyPair.publicKey.export({ format: 'jwk' });
  return { name: processNameOf(publicKey), publicKey, privateKey: keyPair.privateKey };
}

function processNameOf(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('base64url').slice(0, PROCESS_NAME_LENGTH);
}
