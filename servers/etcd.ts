import { join } from 'node:path';
import type { ServerRecipe } from './recipe.js';

/** A cluster of one: whatever port it takes, nobody looks for other members there. */
const NO_PEERS = 'http://127.0.0.1:0';

export const etcd: ServerRecipe = {
  name: 'etcd',
  serve: (directory, port) => {
    const url = `http://127.0.0.1:${port}`;
    const clients = ['--listen-client-urls', url, '--advertise-client-urls', url];
    const peers = ['--listen-peer-urls', NO_PEERS, '--initial-advertise-peer-urls', NO_PEERS];
    const cluster = ['--name', 'stampede', '--initial-cluster', `stampede=${NO_PEERS}`];
    return ['etcd', '--data-dir', join(directory, 'data'), ...clients, ...peers, ...cluster];
  },
  ready: 'ready to serve client requests',
  stopSignal: 'SIGKILL',
  address: (port) => `http://127.0.0.1:${port}`,
  install: 'Debian: apt-get install etcd-server, macOS: brew install etcd',
};
