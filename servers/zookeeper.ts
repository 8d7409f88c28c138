import { join } from 'node:path';
import { systemRoot } from './newer.js';
import type { ServerRecipe } from './recipe.js';

/**
 * Class path with the jars of Debian and of Homebrew. Java skips missing ones. The logger prints the line that `ready`
 * names.
 */
const JARS = [
  // This jar is first: the manifest of the next one names the jute jar of the system, which may have another version.
  join(systemRoot('zookeeper'), 'usr/share/java/zookeeper-jute.jar'),
  join(systemRoot('zookeeper'), 'usr/share/java/zookeeper.jar'),
  join(systemRoot('zookeeper'), 'usr/share/java/slf4j-simple.jar'),
  '/opt/homebrew/opt/zookeeper/libexec/lib/*',
  '/usr/local/opt/zookeeper/libexec/lib/*',
].join(':');
const JVM = ['-Xms32m', '-Xmx128m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-Dzookeeper.forceSync=no'];
const MAIN = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
const SETTINGS = 'zoo.cfg';

export const zookeeper: ServerRecipe = {
  name: 'ZooKeeper',
  settings: {
    file: SETTINGS,
    text: (directory, port) =>
      [
        'tickTime=200',
        'maxSessionTimeout=60000',
        `dataDir=${join(directory, 'data')}`,
        'clientPortAddress=127.0.0.1',
        `clientPort=${port}`,
        'admin.enableServer=false',
      ].join('\n'),
  },
  serve: (directory) => ['java', ...JVM, '-cp', JARS, MAIN, join(directory, SETTINGS)],
  ready: 'PrepRequestProcessor (sid:0) started',
  missing: 'Could not find or load main class',
  stopSignal: 'SIGKILL',
  address: (port) => `127.0.0.1:${port}`,
  install: 'Debian: apt-get install zookeeper, macOS: brew install zookeeper',
};
