import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { systemRoot } from '../../servers/newer.js';
import { timeLimitOf } from '../support/machine.js';
import { askZookeeper } from './ask-zookeeper.js';
import { freePort } from './free-port.js';
import { OwnServer } from './own-server.js';
import { ServerProcess } from './server-process.js';

/** Debian's jars; the manifest of the second names the others, where the first may be of another version. */
const JARS = ['zookeeper-jute', 'zookeeper']
  .map((name) => join(systemRoot('zookeeper'), `usr/share/java/${name}.jar`))
  .join(':');

const JVM = [
  '-Xms32m',
  '-Xmx128m',
  '-XX:+UseSerialGC',
  '-XX:TieredStopAtLevel=1',
  '-Dzookeeper.forceSync=no',
  '-Dznode.container.checkIntervalMs=500',
  '-Dzookeeper.cnxTimeout=500',
];

/** Sessions from twice this. The server looks for expired ones this often. */
export const TICK_MS = 100;

/** Ticks after which a leader drops a follower that it has not heard of. */
const MAX_SYNC_TICKS = Math.ceil(timeLimitOf(2_000) / TICK_MS);

export interface ZookeeperServerOptions {
  /** Further lines of zoo.cfg; they win. */
  readonly settings?: Readonly<Record<string, string | number>>;
  /** Further arguments of the JVM. */
  readonly jvm?: readonly string[];
  /** Which server of an ensemble it is; its `server.N` lines are in `settings`. */
  readonly myid?: number;
}

/** A real ZooKeeper on 127.0.0.1 with the faults of a test. What was written stays when it is killed. */
export class ZookeeperServer extends OwnServer {
  constructor(private readonly options: ZookeeperServerOptions = {}) {
    super();
  }

  /** It has its port and its directory then, and is not started yet. */
  async prepare(): Promise<void> {
    this.port = await freePort();
    this.directory = await mkdtemp(join(tmpdir(), 'zookeeper-server-'));
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  get data(): string {
    return join(this.directory, 'data');
  }

  /** A four-letter word. */
  ask(word: string): Promise<string> {
    return askZookeeper(this.port, word);
  }

  /** The numbers that `mntr` answers. */
  async metric(name: string): Promise<number> {
    const line = new RegExp(`^${name}\\t(?<value>\\S+)$`, 'm').exec(await this.ask('mntr'));
    return Number(line?.groups?.['value']);
  }

  /** Kills it and starts it again on the same port, with nothing or with all it had. */
  async restart({ empty }: { readonly empty: boolean }): Promise<void> {
    await this.kill();
    if (empty) await rm(this.data, { recursive: true });
    await this.launch();
  }

  /** Ends it for good and removes what it wrote. */
  async stop(): Promise<void> {
    await this.kill();
    await rm(this.directory, { recursive: true });
  }

  /** Resolves when it serves: one of an ensemble, when a majority of it is there. */
  async launch(): Promise<void> {
    const { myid, jvm = [] } = this.options;
    await mkdir(this.data, { recursive: true });
    if (myid !== undefined) await writeFile(join(this.data, 'myid'), `${myid}\n`);
    const configuration = join(this.directory, 'zoo.cfg');
    await writeFile(configuration, this.#configuration());
    const main = 'org.apache.zookeeper.server.quorum.QuorumPeerMain';
    this.process = await ServerProcess.start({
      command: 'java',
      args: [...JVM, ...jvm, '-cp', JARS, main, configuration],
      cwd: this.directory,
      readyWithinMs: 60_000,
      isReady: async () => (await this.ask('conf')).includes(`dataDir=${this.data}/`),
    });
  }

  #configuration(): string {
    const settings = {
      tickTime: TICK_MS,
      dataDir: this.data,
      clientPort: this.port,
      clientPortAddress: '127.0.0.1',
      maxSessionTimeout: 120_000,
      maxClientCnxns: 0,
      'admin.enableServer': false,
      '4lw.commands.whitelist': '*',
      initLimit: 100,
      syncLimit: MAX_SYNC_TICKS,
      ...this.options.settings,
    };
    return Object.entries(settings)
      .map(([name, value]) => `${name}=${value}\n`)
      .join('');
  }
}
