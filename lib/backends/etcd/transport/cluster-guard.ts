import { LockConfigurationError } from '../../../core/index.js';
import type { Message } from './protobuf.js';

interface ClusterOfEndpoint {
  readonly url: string;
  readonly clusterId: bigint;
}

/**
 * Refuses all requests after members of different clusters have answered: two processes could hold one key, each on a
 * cluster of its own. A guard that refuses never allows requests again. `ClusterComparison` replaces the guard when all
 * endpoints are of one cluster again.
 */
export class ClusterGuard {
  #firstCluster: ClusterOfEndpoint | undefined;
  #error: LockConfigurationError | undefined;

  /** @throws LockConfigurationError */
  assertOneCluster(): void {
    if (this.#error) throw this.#error;
  }

  /** @throws LockConfigurationError when this reply or an earlier one is of a second cluster */
  checkReply(reply: Message, url: string): void {
    const clusterId = reply.message(1)?.integer(1) ?? 0n;
    // A proxy may leave the cluster's id out of the reply.
    if (clusterId !== 0n) this.#recordCluster({ url, clusterId });
    this.assertOneCluster();
  }

  #recordCluster(cluster: ClusterOfEndpoint): void {
    this.#firstCluster ??= cluster;
    if (cluster.clusterId !== this.#firstCluster.clusterId) this.#error ??= createError(this.#firstCluster, cluster);
  }
}

function createError(first: ClusterOfEndpoint, second: ClusterOfEndpoint): LockConfigurationError {
  return new LockConfigurationError(
    `endpoints must be members of one cluster of etcd, but ${first.url} answered as cluster ${formatId(first)}, and ${second.url} as cluster ${formatId(second)}: compare "etcdctl member list" of both`,
    'endpoints',
  );
}

/** Returns the number as `etcdctl` shows it. */
function formatId({ clusterId }: ClusterOfEndpoint): string {
  return BigInt.asUintN(64, clusterId).toString(16);
}
