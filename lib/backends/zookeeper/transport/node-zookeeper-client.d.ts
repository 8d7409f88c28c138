/** The client has no types of its own; these are of 1.1.3, as far as `wire.ts` and `connection.ts` go. */
declare module 'node-zookeeper-client' {
  const client: import('./wire.js').ClientLibrary;
  export default client;
}

declare module 'node-zookeeper-client/lib/jute/index.js' {
  const jute: import('./wire.js').JuteLibrary;
  export default jute;
}
