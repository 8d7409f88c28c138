import { join } from 'node:path';
import type { ServerRecipe } from './recipe.js';

/** Address for other members. The cluster has only one, and takes any port for it. */
const PEER_URL = 'http://127.0.0.1:0';

export const etcd: ServerRecipe = {
  name: 'etcd',
  serve: (directory, port) => {
    const url = `http://127.0.0.1:${port}`;
    const clients = ['--listen-client-urls', url, '--advertise-client-urls', url];
    const peers = ['--listen-peer-urls', PEER_URL, '--initial-advertise-peer-urls', PEER_URL];
    const cluster = ['--name', 'stampede', '--initial-cluster', `stampede=${PEER_URL}`];
    return ['etcd', '--data-dir', join(directory, 'data'), ...clients, ...peers, ...cluster];
  },
  ready: 'ready to serve client requests',
  stopSignal: 'SIGKILL',
  address: (port) => `http://127.0.0.1:${port}`,
  install: 'Debian: apt-get install etcd-server, macOS: brew install etcd',
};
