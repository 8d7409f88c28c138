/** Makes elements and texts only: a key is never read as markup. */
export const elements: string = /* JavaScript */ String.raw`'use strict';
const base = location.pathname.replace(/\/+$/, '');
const byId = (id) => document.getElementById(id);
const rows = new Map();
const expanded = new Set();
const troubles = [];
let state;
let asked;
let due;

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

function write(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function duration(ms) {
  if (ms === undefined || Number.isNaN(ms)) return '–';
  if (ms < 1000) return Math.round(ms) + ' ms';
  const seconds = ms / 1000;
  if (seconds < 60) return seconds.toFixed(1) + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + Math.floor(seconds % 60) + ' s';
  return Math.floor(seconds / 3600) + ' h ' + Math.floor((seconds % 3600) / 60) + ' min';
}

const nameOf = ({ label, host, pid }) => [label, host && host + ':' + pid].filter(Boolean).join(' · ') || 'unknown';
const shareOf = ({ share }) => (share ? ' · ' + share : '');
const clock = (at) => element('time', { dateTime: at }, new Date(at).toLocaleTimeString());
const several = () => state.backends.length > 1;
const waitingFor = (row) => Math.max(row.waiters.length, row.here ? row.here.waitersHere : 0);
const sinceOf = (row) => (row.holder && row.holder.since ? Date.parse(row.holder.since) : Number.NaN);

const names = new Intl.Collator(undefined, { numeric: true });
const ORDERS = {
  key: (a, b) => names.compare(a.key, b.key),
  waiting: (a, b) => waitingFor(b) - waitingFor(a) || names.compare(a.key, b.key),
  since: (a, b) => (sinceOf(a) || Infinity) - (sinceOf(b) || Infinity) || names.compare(a.key, b.key),
};

// Characters that cannot be seen, or that turn the letters around them, are shown as JavaScript writes them.
const UNSEEN = /\\|^ | $| (?= )|[^\P{Z} ]|\p{C}|\p{Default_Ignorable_Code_Point}/gu;
const escaped = (char) => (char === '\\' ? '\\\\' : '\\u{' + char.codePointAt(0).toString(16).toUpperCase() + '}');
const visible = (key) => key.replace(UNSEEN, escaped);
const LONGEST_SHOWN = 80;
const isCut = (key) => key.length > LONGEST_SHOWN;
const short = (key) => visible(isCut(key) ? key.slice(0, 50) + '…' + key.slice(-25) : key);

function eventLine({ type, at, backend, key, fencingToken, detail, times }) {
  const name = element('b', {}, type === 'timedOut' ? 'timed out' : type === 'backendFailed' ? 'failed' : type);
  const parts = [clock(at), name, ' '];
  if (several()) parts.push(backend, ' ');
  if (key !== undefined) parts.push(element('code', {}, short(key)), ' ');
  if (fencingToken !== undefined) parts.push('token ' + fencingToken + ' ');
  if (detail !== undefined) parts.push(detail);
  if (times > 1) parts.push(' (' + times + ' times)');
  const line = element('li', {}, ...parts);
  line.dataset.type = type;
  return line;
}
`;
