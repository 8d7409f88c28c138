import { type Plan, readArguments, USAGE, UsageError } from './arguments.js';
import { findFailures, type Report } from './report.js';

try {
  const plan = readArguments(process.argv.slice(2));
  if (plan === 'help') console.log(USAGE);
  else await runAndPrint(plan);
} catch (error) {
  const message = error instanceof Error ? error.message : String(error);
  console.error(error instanceof UsageError ? `${message}\n\n${USAGE}` : message);
  process.exitCode = error instanceof UsageError ? 2 : 1;
}

async function runAndPrint(plan: Plan): Promise<void> {
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.once(signal, () => interrupted.abort(new Error(`ended by ${signal}`)));
  }
  const { processes, backend, buyers, stock } = plan;
  console.error(`${processes} processes, locks in ${backend}: ${buyers} buyers want ${stock} pieces …`);
  const { run } = await import('./run.js');
  const result = await run(plan, interrupted.signal);
  console.log(plan.json ? JSON.stringify(result) : formatTable(result));
  const failures = findFailures(result);
  for (const failure of failures) console.error(`FAILED  ${failure}`);
  if (failures.length > 0) process.exitCode = 1;
}

function formatTable({ latencyMs, ...figures }: Report): string {
  const rows = {
    ...figures,
    ...Object.fromEntries(Object.entries(latencyMs).map(([name, ms]) => [`latency ${name} (ms)`, ms])),
  };
  return Object.entries(rows)
    .map(([name, value]) => `  ${name.padEnd(18)} ${String(value).padStart(8)}`)
    .join('\n');
}
