import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import type { Result } from '../championship.js';
import { type BackendName, BACKENDS } from '../competitions.js';
import { renderPlots } from './plots.js';
import { renderReport, type Report } from './report.js';

const folder = new URL('../results/', import.meta.url);
const page = new URL('../RESULTS.md', import.meta.url);

const PREFACE = `# Results of the benchmark

Made by \`npm run bench -- --backend <name>\` with \`--save\` or \`--again\`; nothing here is written by hand. All ratios are against a floor that was
measured in turns with the contestant: the raw calls without which the backend's lock cannot be had, retried every 10 to 50 ms.
The figures of a scenario are medians of its rounds; starved callers, failures and overlaps are added up over all rounds. An
overlap is a caller who got in while another one was inside, by a clock that all processes share.`;

/**
 * Replaces the saved results of the scenarios and contestants of a run. Rejects where the saved ones come from another
 * machine or other versions.
 */
export async function mergeIntoSavedReport(report: Report): Promise<void> {
  const earlier = await readSavedReport(report.backend);
  const circumstances = ({ machine, versions, quick }: Report): string => JSON.stringify({ machine, versions, quick });
  if (circumstances(earlier) !== circumstances(report)) {
    throw new Error(`${circumstances(earlier)} is what was saved, and this was ${circumstances(report)}: use --save`);
  }
  const nameOf = ({ scenario, contestant }: Result): string => JSON.stringify([scenario, contestant]);
  const repeated = new Set(report.results.map(nameOf));
  const results = [...report.results, ...earlier.results.filter((result) => !repeated.has(nameOf(result)))];
  const scenarios = report.results.map(({ scenario }) => scenario);
  await saveReport({ ...earlier, results, again: [...new Set([...(earlier.again ?? []), ...scenarios])] });
}

/** Replaces the saved results of a backend, and writes RESULTS.md anew from those of all backends. */
export async function saveReport(report: Report): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(new URL(`${report.backend}.json`, folder), `${JSON.stringify(report, undefined, 1)}\n`);
  for (const [name, picture] of Object.entries(renderPlots(report))) await writeFile(new URL(name, folder), picture);
  const files = await readdir(folder);
  const kept = BACKENDS.filter((backend) => files.includes(`${backend}.json`));
  const reports = await Promise.all(kept.map(readSavedReport));
  const chapters = reports.map((each) => [renderReport(each), ...pictureLinks(each)].join('\n\n'));
  await writeFile(page, `${[PREFACE, ...chapters].join('\n\n')}\n`);
}

async function readSavedReport(backend: BackendName): Promise<Report> {
  return JSON.parse(await readFile(new URL(`${backend}.json`, folder), 'utf8')) as Report;
}

function pictureLinks(report: Report): string[] {
  return Object.keys(renderPlots(report)).map((name) => `![${name.replace('.svg', '')}](results/${name})`);
}
