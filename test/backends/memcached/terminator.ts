import type { Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { StandIn } from '../../support/stand-in.js';

const psk = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');

/** The options of its clients, who know its key. */
export const TLS = {
  ciphers: 'PSK',
  maxVersion: 'TLSv1.2' as const,
  pskCallback: () => ({ psk, identity: 'locks' }),
  checkServerIdentity: () => undefined,
};

/** Speaks TLS for a memcached that does not, and remembers who it was taken for. */
export class Terminator extends StandIn {
  readonly names: unknown[] = [];

  constructor(private readonly target: number) {
    super(createServer({ ciphers: 'PSK', maxVersion: 'TLSv1.2', pskCallback: () => psk }), 'secureConnection');
  }

  protected override connect(client: Socket): void {
    this.names.push((client as TLSSocket).servername);
    this.keep(client).pipe(this.connectBehind(this.target, client)).pipe(client);
  }
}
