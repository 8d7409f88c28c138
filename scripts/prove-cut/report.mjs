/** Writes what came out, as Markdown and as JSON, into results/. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { isCaught, isMissed } from './judge.mjs';
import { nameOf, remarkOn, RESULTS } from './remarks.mjs';

export function report({ data, changes }) {
  const { seed, commit, outcomes } = data;
  const rows = changes.map((change) => {
    const name = nameOf(change);
    const { [change.id]: quick } = outcomes.quick;
    const { [change.id]: full } = outcomes.full;
    return { name, kind: change.kind, quick, full, remark: remarkOn(change) };
  });
  const failing = Object.entries(data.cover).flatMap(([tier, specs]) =>
    Object.entries(specs).flatMap(([name, { failed }]) => (failed.length > 0 ? [{ tier, name, failed }] : [])),
  );
  mkdirSync(RESULTS, { recursive: true });
  writeFileSync(join(RESULTS, 'outcomes.json'), `${JSON.stringify({ seed, commit, failing, rows }, undefined, 2)}\n`);
  writeFileSync(join(RESULTS, 'README.md'), describe({ seed, commit, failing, rows }));
  return true;
}

function describe({ seed, commit, failing, rows }) {
  const byQuick = rows.filter(({ quick }) => isCaught(quick));
  const onlyByFull = rows.filter(({ full }) => isCaught(full));
  const byNone = rows.filter(({ quick, full }) => isMissed(quick) && isMissed(full));
  const caught = byQuick.length + onlyByFull.length;
  const percent = ((100 * byQuick.length) / Math.max(1, caught)).toFixed(1);
  const open = rows.length - caught - byNone.length;
  return [
    '# What the tiers catch',
    `Commit ${commit}, seed ${seed}, ${rows.length} changes. The full tier catches ${caught}, and the quick tier ${byQuick.length} of these: ${percent} %. Nothing catches ${byNone.length}, and ${open} are still to be tried.`,
    ...list('Only the full tier catches', onlyByFull, ({ full }) => outcomeOf(full)),
    ...list('Nothing catches', byNone, ({ remark = 'no remark yet' }) => remark),
    ...list('Specs that fail without a change, and are left out', failing, ({ tier }) => `${tier} tier`),
    '## All changes',
    ['| change | kind | quick tier | full tier |', '| --- | --- | --- | --- |', ...rows.map(rowOf)].join('\n'),
    '',
  ].join('\n\n');
}

function list(title, rows, remarkOf) {
  return rows.length === 0
    ? []
    : [`## ${title}`, rows.map((row) => `- ${code(row.name)}: ${remarkOf(row)}`).join('\n')];
}

function rowOf({ name, kind, quick, full }) {
  return `| ${code(name)} | ${kind} | ${outcomeOf(quick)} | ${outcomeOf(full)} |`;
}

function outcomeOf({ outcome, spec = '', test = '' } = { outcome: '-' }) {
  return spec ? `${outcome} by ${code(`${spec}: ${test}`)}` : outcome;
}

/** Writes a text as code, also in a cell of a table. */
function code(text) {
  return `\`\` ${text.replaceAll('|', String.raw`\|`)} \`\``;
}
