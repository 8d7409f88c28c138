import { ForbiddenException, UnsupportedMediaTypeException } from '@nestjs/common';
import type { IncomingHttpHeaders } from 'node:http';

/**
 * Refuses requests that a page of another origin makes the user's browser send. Browsers name the origin of every POST, and
 * ask the server before they send JSON to another origin.
 * @throws ForbiddenException; UnsupportedMediaTypeException
 */
export function assertSameOrigin(headers: IncomingHttpHeaders): void {
  if (!isSameOrigin(headers)) throw new ForbiddenException('Keys are freed from the page itself');
  const [type = ''] = (headers['content-type'] ?? '').split(';');
  if (type.trim().toLowerCase() !== 'application/json') throw new UnsupportedMediaTypeException();
}

/** Browsers send `Sec-Fetch-Site` from secure pages only. Some proxies add the default port to the host. */
function isSameOrigin(headers: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  const { origin = '' } = headers;
  const host = headers.host ?? headers[':authority'];
  if (!URL.canParse(origin)) return false;
  const { protocol, host: originHost } = new URL(origin);
  const address = `${protocol}//${String(host ?? '')}`;
  return URL.canParse(address) && new URL(address).host === originHost;
}
