import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  createServer,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo } from 'node:net';

/** An answer of the proxy itself. */
export interface OwnAnswer {
  readonly headers: OutgoingHttpHeaders;
  readonly body?: string;
  readonly trailers?: OutgoingHttpHeaders;
}

const WITH_A_PAGE = { 'content-type': 'text/html' };

/** Answers like a web server that has lost its backend. */
export const pageOf = (status: number): OwnAnswer => ({
  headers: { ':status': status, ...WITH_A_PAGE },
  body: `<html>${status}</html>`,
});

/** A proxy that ends HTTP/2 and begins it anew, as nginx and its like do, in front of one server. */
export class Http2Proxy implements AsyncDisposable {
  readonly #server = createServer();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #behind: ClientHttp2Session;
  readonly counts: Record<string, number> = {};
  /** Requests that are not forwarded, by their path. */
  answer: (path: string) => OwnAnswer | undefined = () => undefined;
  /** After so many requests each connection is told to go. */
  requestsPerConnection = Infinity;

  private constructor(target: string) {
    this.#behind = connect(target);
    this.#server.on('session', (session: ServerHttp2Session) => {
      this.#sessions.add(session);
      session.on('close', () => this.#sessions.delete(session));
      let requests = 0;
      session.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
        requests += 1;
        // Node would say with it that it takes no notice of streams begun before: nginx names the last one it takes.
        if (requests === this.requestsPerConnection) session.goaway(0, stream.id);
        this.#take(stream, headers);
      });
    });
  }

  static async start(target: string): Promise<Http2Proxy> {
    const proxy = new Http2Proxy(target);
    proxy.#server.listen(0, '127.0.0.1');
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#behind.destroy();
    for (const session of this.#sessions) session.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  #take(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const path = headers[':path'] ?? '';
    const method = path.split('/').at(-1) ?? '';
    this.counts[method] = (this.counts[method] ?? 0) + 1;
    stream.on('error', () => undefined);
    const own = this.answer(path);
    if (own) reply(stream, own);
    else this.#forward(stream, headers);
  }

  #forward(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { ':authority': _authority, ...rest } = headers;
    const behind = this.#behind.request(rest);
    stream.pipe(behind);
    stream.on('close', () => behind.close());
    behind.on('error', () => stream.close());
    behind.on('response', (head, flags) => {
      stream.respond(head, { waitForTrailers: (flags & 1) === 0, endStream: (flags & 1) === 1 });
      behind.pipe(stream);
    });
    let trailers: OutgoingHttpHeaders = {};
    behind.on('trailers', (given) => (trailers = given));
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  }
}

function reply(stream: ServerHttp2Stream, { headers, body = '', trailers }: OwnAnswer): void {
  stream.resume();
  stream.respond(headers, { waitForTrailers: trailers !== undefined });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers ?? {}));
  stream.end(body);
}
