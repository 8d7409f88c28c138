import { isQuickTier, wantedOf } from '../support/index.js';
import type { FaultName } from '../backends/registered-backend.js';
import { type BackendName, registered } from '../backends/registry.js';
import { describePromises } from '../conformance/describe-lock-backend.js';
import { groupBy } from '../support/group-by.js';
import { callers } from './callers.js';
import { costs } from './costs.js';
import type { FaultTheme } from './fault-theme.js';
import { fence } from './fence.js';
import { histories, historiesOfKills, historiesOfShares } from './history.js';
import { idle, idleInLine, lostGrant } from './idle.js';
import { jobs } from './jobs.js';
import { leaders } from './leaders.js';
import { network } from './network.js';
import { order, orderOfSlowSessions } from './order.js';
import { outcomes } from './outcomes.js';
import { processes } from './processes.js';
import { resend } from './resend.js';
import { servers } from './servers.js';

/** `hammer.long.spec.ts` goes through all backends at once, because its processes are the same. */
const THEMES: Readonly<Record<Exclude<FaultName, 'hammer'>, FaultTheme>> = {
  callers,
  costs,
  fence,
  history: histories,
  'history-of-kills': historiesOfKills,
  'history-of-shares': historiesOfShares,
  idle,
  'idle-in-line': idleInLine,
  'lost-grant': lostGrant,
  jobs,
  leaders,
  network,
  order,
  'order-of-slow-sessions': orderOfSlowSessions,
  outcomes,
  processes,
  resend,
  servers,
};

/** All faults of one backend, on one server; of one with sessions, on a server for each length of session. */
export function describeFaults(name: BackendName): void {
  const { faults, harness, sessions = false } = registered(name);
  const themes = faults
    .filter((fault) => fault !== 'hammer')
    .map((fault) => THEMES[fault])
    .filter(({ thorough = false }) => !(thorough && isQuickTier));
  const groups = groupBy(themes, ({ sessionTtlMs }) => (sessions ? sessionTtlMs : undefined));
  for (const _ of wantedOf([name])) {
    for (const [sessionTtlMs, group] of groups) {
      const title = sessionTtlMs === undefined ? name : `${name}, with sessions of ${sessionTtlMs} ms`;
      describePromises(title, harness(sessionTtlMs === undefined ? {} : { sessionTtlMs }), (suite) => {
        for (const theme of group) describe(theme.title, () => theme.declare(suite, name));
      });
    }
  }
}
