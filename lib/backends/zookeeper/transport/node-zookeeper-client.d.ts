/**
 * Types of node-zookeeper-client 1.1.3, which has none of its own, as far as `wire.ts` and `connection.ts` use them.
 */
declare module 'node-zookeeper-client' {
  const client: import('./wire.js').ClientLibrary;
  export default client;
}

declare module 'node-zookeeper-client/lib/jute/index.js' {
  const jute: import('./wire.js').JuteLibrary;
  export default jute;
}
