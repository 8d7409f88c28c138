import { refuseOption } from '../../core/index.js';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

const DEFAULT_PORT = 2181;

const SERVER_PATTERN = /^(?<host>[\w.-]+|\[[\da-f:.]+\])(:(?<port>\d{1,5}))?$/iu;
const PATH_PATTERN = /^(\/(?!\.{1,2}(\/|$))[^/\s\p{C}]+)+$/u;

export function isZnodePath(text: unknown): text is string {
  return typeof text === 'string' && PATH_PATTERN.test(text);
}

/**
 * Parses `zk1:2181,zk2:2181/chroot`. The parser of the client library accepts any text, and no IPv6.
 * @throws LockConfigurationError that does not repeat the text: it may be a URL with a password
 */
export function parseConnectString(connectString: unknown): { servers: readonly ServerAddress[]; chroot: string } {
  const text = typeof connectString === 'string' ? connectString.trim() : '';
  const serversEnd = text.includes('/') ? text.indexOf('/') : text.length;
  const chroot = text.slice(serversEnd).replace(/\/$/u, '');
  const servers = text.slice(0, serversEnd).split(',').map(parseServer);
  if (chroot !== '' && !isZnodePath(chroot)) refuseConnectString();
  return { servers, chroot };
}

function parseServer(text: string): ServerAddress {
  const { host, port } = SERVER_PATTERN.exec(text.trim())?.groups ?? {};
  const portNumber = port === undefined ? DEFAULT_PORT : Number(port);
  if (host === undefined || portNumber < 1 || portNumber > 65_535) refuseConnectString();
  return { host: host.replaceAll(/[[\]]/gu, ''), port: portNumber };
}

function refuseConnectString(): never {
  const expected = 'host1:2181,host2:2181,host3:2181/chroot, without a scheme and without a password';
  refuseOption('connectString', `must look like ${expected}`);
}
