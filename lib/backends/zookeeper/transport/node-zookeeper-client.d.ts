/** Types of node-zookeeper-client 1.1.3, which has none of its own. */
declare module 'node-zookeeper-client' {
  const client: import('./wire.js').ClientLibrary;
  export default client;
}

declare module 'node-zookeeper-client/lib/jute/index.js' {
  const jute: import('./wire.js').JuteLibrary;
  export default jute;
}
