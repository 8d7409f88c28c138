/** Runs the benchmark: `npm run bench -- --help`. */
import { argv, exit, stderr, stdout } from 'node:process';

import { Arena } from './arena.js';
import { readArguments, USAGE, UsageError } from './arguments.js';
import { runChampionship } from './championship.js';
import { Progress } from './progress.js';
import { renderReport, type Report } from './report/report.js';
import { mergeIntoSavedReport, saveReport } from './report/results-folder.js';
import { describeMachine, readVersions } from './versions.js';

async function main(): Promise<number> {
  const plan = readArguments(argv.slice(2));
  if (plan === 'help') {
    stdout.write(`${USAGE}\n`);
    return 0;
  }
  await using arena = await Arena.open(plan.backend, plan.delayMs);
  const results = await runChampionship(arena, plan, new Progress(stderr));
  const { backend, pace } = plan;
  const date = new Date().toISOString().slice(0, 10);
  const report: Report = {
    backend,
    date,
    machine: describeMachine(),
    versions: await readVersions(backend),
    quick: pace.quick,
    ...(plan.delayMs > 0 ? { delayMs: plan.delayMs } : {}),
    results,
  };
  if (plan.again) await mergeIntoSavedReport(report);
  else if (plan.save) await saveReport(report);
  stdout.write(`${plan.json ? JSON.stringify(report) : renderReport(report)}\n`);
  return printOverlaps(report) ? 1 : 0;
}

/** Prints each contestant that granted a lock to two callers at once. Returns whether there was one. */
function printOverlaps({ results }: Report): boolean {
  const guilty = results.filter(({ figures }) => (figures.overlaps ?? 0) > 0);
  for (const { scenario, contestant, figures } of guilty) {
    stderr.write(`${scenario}: ${contestant} let callers in ${figures.overlaps} times while another one was inside\n`);
  }
  return guilty.length > 0;
}

main().then(exit, (error: unknown) => {
  stderr.write(error instanceof UsageError ? `${error.message}\n\n${USAGE}\n` : `${String(error)}\n`);
  exit(2);
});
