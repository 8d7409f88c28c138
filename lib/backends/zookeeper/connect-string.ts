import { refuseOption } from '../../core/index.js';

export interface ServerAddress {
  readonly host: string;
  readonly port: number;
}

const DEFAULT_PORT = 2181;

/** A name, an IPv4 address, or an IPv6 address in brackets; then a port, if any. */
const SERVER = /^(?<host>[\w.-]+|\[[\da-f:.]+\])(:(?<port>\d{1,5}))?$/iu;
const PATH = /^(\/(?!\.{1,2}(\/|$))[^/\s\p{C}]+)+$/u;

/** Whether this may be a part of a node's path as it is. */
export function isPath(text: unknown): text is string {
  return typeof text === 'string' && PATH.test(text);
}

/**
 * Reads `zk1:2181,zk2:2181/chroot`. The client's own parser accepts any text, and no IPv6.
 * @throws LockConfigurationError that does not repeat the text: it may be a URL with a password
 */
export function parseConnectString(given: unknown): { servers: readonly ServerAddress[]; chroot: string } {
  const text = typeof given === 'string' ? given.trim() : '';
  const slash = text.includes('/') ? text.indexOf('/') : text.length;
  const chroot = text.slice(slash).replace(/\/$/u, '');
  const servers = text.slice(0, slash).split(',').map(serverOf);
  if (chroot !== '' && !isPath(chroot)) refuse();
  return { servers, chroot };
}

function serverOf(text: string): ServerAddress {
  const { host, port } = SERVER.exec(text.trim())?.groups ?? {};
  const number = port === undefined ? DEFAULT_PORT : Number(port);
  if (host === undefined || number < 1 || number > 65_535) refuse();
  return { host: host.replaceAll(/[[\]]/gu, ''), port: number };
}

function refuse(): never {
  const expected = 'host1:2181,host2:2181,host3:2181/chroot, without a scheme and without a password';
  refuseOption('connectString', `must look like ${expected}`);
}
