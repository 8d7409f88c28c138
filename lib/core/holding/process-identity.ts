import { createHash, createPublicKey, generateKeyPairSync, type KeyObject, sign, verify } from 'node:crypto';

export interface Signature {
  /** Ed25519 key, 32 bytes in base64url, or the coordinates of a P-256 key, with a dot between. */
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
  const signature = sign(digestOf(publicKey), Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return { publicKey, signature: signature.toString('base64url') };
}

/** @throws when `publicKey` is no key of these two kinds */
export function isSignedBy(owner: string, text: string, { publicKey, signature }: Signature): boolean {
  if (!owner.startsWith(`${processNameOf(publicKey)}.`)) return false;
  const [x = '', y] = publicKey.split('.');
  const jwk = y === undefined ? { kty: 'OKP', crv: 'Ed25519', x } : { kty: 'EC', crv: 'P-256', x, y };
  const key = createPublicKey({ key: jwk, format: 'jwk' });
  const signatureBytes = Buffer.from(signature, 'base64url');
  return verify(digestOf(publicKey), Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }, signatureBytes);
}

/** Creates the identity at first use, so that loading the module costs nothing. */
function getIdentity(): ProcessIdentity {
  identity ??= createIdentity();
  return identity;
}

function createIdentity(): ProcessIdentity {
  const keyPair = generateKeyPair();
  const { x = '', y } = keyPair.publicKey.export({ format: 'jwk' });
  const publicKey = y === undefined ? x : `${x}.${y}`;
  return { name: processNameOf(publicKey), publicKey, privateKey: keyPair.privateKey };
}

/** Some builds of OpenSSL, as for FIPS, refuse Ed25519. */
function generateKeyPair(): Record<'publicKey' | 'privateKey', KeyObject> {
  try {
    return generateKeyPairSync('ed25519');
  } catch {
    return generateKeyPairSync('ec', { namedCurve: 'P-256' });
  }
}

function digestOf(publicKey: string): 'sha256' | null {
  return publicKey.includes('.') ? 'sha256' : null;
}

function processNameOf(publicKey: string): string {
  return createHash('sha256').update(publicKey).digest('base64url').slice(0, PROCESS_NAME_LENGTH);
}
