/** A way to let time judge, which fails on a busy machine, and the files in which it may stand. */
export interface ClockPattern {
  readonly pattern: RegExp;
  /** What to write instead. */
  readonly instead: string;
  /** Files below test/, without their endings, by the reason why it stands there. */
  readonly places: Readonly<Record<string, string>>;
}

/** clock-patterns.spec.ts holds that there are no other places, and that these are not out of date. */
export const CLOCK_PATTERNS: Readonly<Record<string, ClockPattern>> = {
  'time limit': {
    pattern: /\.toTakeLessThan\(/u,
    instead: 'a lease of ten minutes, and an event that only the right cause brings',
    places: {
      'a time-out, a deadline or a lease of its own has to end the wait in its time': `
        backends/etcd/network backends/etcd/proxies.long backends/etcd/security backends/etcd/trouble
        backends/memcached/client backends/memcached/connection backends/memcached/expiry backends/memcached/options
        backends/memcached/silence backends/memcached/strange-servers backends/redis/own-connections.long
        backends/redis/queue-waiting backends/redis/silent-waiters.long backends/redlock/latency
        backends/redlock/quorum backends/redlock/renewal.long backends/redlock/replies backends/redlock/slow-minority
        backends/redlock/split-votes.long backends/typeorm/busy backends/typeorm/lease-faults.long
        backends/typeorm/refused-values backends/typeorm/row-level-security backends/zookeeper/client-hazards.long
        backends/zookeeper/options backends/zookeeper/silence conformance/close conformance/holding
        conformance/lock-delay conformance/loss conformance/min-hold conformance/release conformance/waiting
        faults/idle faults/leaders faults/network faults/processes nest/key-template-names orms/describe-adapter
        support/judging`,
      'told at once, and not when a lease, a poll or a patience would have ended': `
        backends/etcd/cluster.long backends/etcd/frozen-waiters.long backends/etcd/session
        backends/redis/cluster-slots backends/redis/given-client-promises backends/redis/node-redis-topologies.long
        backends/redis/queue-faults backends/redlock/health backends/redlock/restarts backends/typeorm/drivers
        backends/typeorm/forgotten-connections.long backends/typeorm/names backends/typeorm/pg-bouncer
        backends/typeorm/row-waiting.long backends/typeorm/session-faults.long backends/typeorm/switch-over.long
        backends/typeorm/wake-up backends/zookeeper/ensemble.long backends/zookeeper/nodes
        backends/zookeeper/restarts.long backends/zookeeper/sessions faults/callers faults/servers support/fault-proxy`,
    },
  },
  'short lease': {
    pattern:
      /\b(?:ttlMs|\w*TtlMs|TTL_MS|SESSION_MS)(?: =|:) (?:Math\.\w+\()?(?:atLeastMs\(|timeLimitOf\()?(?:[1-9]\d{1,2}|1_\d{3})\b(?!_| \*)/u,
    instead: 'a lease that ends when the test ends it: `evict`, `revoke`, or a manual clock',
    places: {
      'the lease of a holder that has died, or was given up, has to end while the test waits': `
        backends/etcd/session backends/memcached/expiry backends/redis/cluster-slots backends/redis/getset-mode
        backends/redis/own-connections.long backends/redis/queue-faults backends/redis/queue-waiting
        backends/redlock/completion backends/redlock/forgetful-nodes backends/redlock/health backends/redlock/restarts
        backends/redlock/split-votes.long backends/sqlite/sqlite-files backends/typeorm/existing-table-check backends/typeorm/existing-table
        backends/typeorm/fenced-servers backends/typeorm/lease-rows backends/typeorm/lease-secrets
        backends/typeorm/lost-standby.long backends/typeorm/session-faults.long backends/typeorm/wake-up
        backends/zookeeper/client-hazards.long backends/zookeeper/requests backends/zookeeper/restarts.long
        backends/zookeeper/sessions faults/cut-off faults/failover-crowd faults/failover nestjs-locks/lock-store
        orms/pglite`,
      'the shortest lease of a backend, as its harness says': `
        backends/describe-backend backends/memory/harness backends/redis/harness backends/redlock/harness
        backends/typeorm/harness backends/typeorm/sqlite-harness backends/zookeeper/harness nest/inspected-app`,
      'nobody waits for its end: input that is refused, or a value that is compared': `
        backends/etcd/options nest/decoration nestjs-locks/lock-store-promises package/package`,
      'the lease has to be renewed while the test looks': `
        backends/redis/cluster.long backends/redis/given-client-promises backends/redis/key-routing
        backends/redis/key-tracking.long backends/redis/rights backends/redis/shares backends/redlock/redlock-options
        backends/redlock/renewal.long backends/redlock/rights backends/redlock/same-server
        nest/leads nest/results nest/streams`,
    },
  },
  'short time-out': {
    pattern:
      /\b\w*(?:TimeoutMs|TIMEOUT_MS)(?: =|:) (?:Math\.\w+\()?(?:atLeastMs\(|timeLimitOf\()?(?:[1-9]\d{1,2}|1_\d{3})\b(?!_| \*)/u,
    instead: 'a minute, unless the time-out is what is tested',
    places: {
      'the time-out is what is tested: a server is silent until it ends': `
        backends/etcd/network backends/etcd/silent-server backends/memcached/client backends/memcached/connection
        backends/memcached/options backends/memcached/silence backends/memcached/strange-servers backends/redis/access
        backends/redis/blocked-loop.long backends/redis/cluster-slots backends/redis/cluster.long
        backends/redis/given-client-promises backends/redis/outcomes backends/redis/own-connections.long
        backends/redis/rights backends/redis/sentinel.long backends/redis/start backends/redis/waiting-here.long
        backends/redlock/health backends/redlock/redlock-world backends/redlock/same-server
        backends/typeorm/blocked-loop.long backends/typeorm/busy backends/typeorm/lease-faults.long
        backends/typeorm/lease-secrets backends/typeorm/row-faults.long backends/typeorm/row-waiting.long
        backends/typeorm/session-faults.long backends/typeorm/slow-connections.long orms/pglite servers/redis-cluster`,
    },
  },
  sleep: {
    pattern: /setTimeout\(resolve|\bthroughout\(|\bsleep\(|\bpause\(systemClock/u,
    instead: '`eventually`, or the answer to a request that was sent afterwards',
    places: {
      'how a test, a server or a job waits, and not what it expects': `
        backends/etcd/sharing backends/redis/redis-getset-contract backends/redis/single-flight
        backends/redlock/forgetful-nodes backends/redlock/regions.long backends/typeorm/server-sessions
        backends/zookeeper/ensemble.long backends/zookeeper/requests backends/zookeeper/sessions conformance/contract
        conformance/several-keys conformance/sharing core/leadership-ends core/single-flight e2e/bull-application
        faults/jobs nest/tracing orms/describe-adapter orms/pglite servers/server-process
        simulation/claims/joined-readers support/eventually support/harness-cron-child support/harness-hammer
        support/harness-leader`,
      'a lease is renewed for longer than it lasts, or has ended: only time shows it': `
        backends/etcd/cluster.long backends/etcd/network backends/etcd/session backends/memcached/expiry
        backends/memcached/tokens backends/redis/cluster-rules.long backends/redis/cluster-slots
        backends/redis/cluster.long backends/redis/frozen-server.long backends/redis/given-client-promises
        backends/redis/given-clients backends/redis/key-routing backends/redis/key-tracking.long
        backends/redis/queue-faults backends/redis/read-only.long backends/redis/rights backends/redis/split-brain
        backends/redlock/redlock-options backends/redlock/renewal.long backends/redlock/restarts
        backends/redlock/rights backends/typeorm/lease-faults.long backends/typeorm/lease-rows
        backends/typeorm/pool-settings.long backends/typeorm/read-only backends/typeorm/settings conformance/fencing
        conformance/holding conformance/loss conformance/transferring faults/network faults/processes faults/servers
        nestjs-locks/rules`,
      'nothing happens, or no request is sent, for as long as it would take': `
        backends/etcd/proxies.long backends/etcd/queue backends/etcd/security backends/memcached/round-trips
        backends/memcached/silence backends/redis/access backends/redis/former-connection.long
        backends/redis/queue-mode backends/redis/queue-waiting backends/redis/ready-check
        backends/redis/sentinels-disagree.long backends/redis/start backends/redis/tracked-locks
        backends/typeorm/existing-table backends/typeorm/forgotten-connections.long backends/typeorm/row-faults.long
        backends/typeorm/switch-over.long backends/zookeeper/client-hazards.long backends/zookeeper/sharing.long
        faults/costs faults/idle faults/leaders`,
    },
  },
  'two clocks': {
    pattern: /At\)?\)?\.toBe(?:Less|Greater)Than(?:OrEqual)?\(\w+At\)/u,
    instead: 'one clock, or the tokens of the server',
    places: {
      'one process tells both, in the turns of one event loop': `
        backends/etcd/cluster.long conformance/holding`,
    },
  },
  'blocked loop': {
    pattern: /\bblockEventLoop\(|Atomics\.wait\(/u,
    instead: '`ManualClock.stall`',
    places: {
      'the fault itself: a process that computes, or collects garbage, for as long as its lease': `
        backends/memcached/connection backends/redis/blocked-loop.long backends/typeorm/blocked-loop.long
        conformance/contract conformance/loss core/kit support/harness-cron-child
        support/harness-holder-child`,
      'waits where nothing may be asynchronous': `
        servers/process-family support/machine`,
    },
  },
};
