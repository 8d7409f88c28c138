import type { Result } from '../championship.js';
import type { BackendName } from '../competitions.js';
import { SCENARIOS } from '../scenarios/index.js';
import { FAULTS, type Metric, type Scenario } from '../scenarios/scenario.js';
import { type Target, TARGETS } from '../targets.js';
import { COLUMNS, formatMetric } from './columns.js';
import { renderTable } from './markdown-table.js';

/** Results of a run, or of several saved ones. `--json` prints them. */
export interface Report {
  readonly backend: BackendName;
  readonly date: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly quick: boolean;
  /** Milliseconds by which requests and their replies were delayed. */
  readonly delayMs?: number;
  readonly results: readonly Result[];
  /** Scenarios that were measured again in a later run than the rest. */
  readonly again?: readonly string[];
}

/** Returns a report in Markdown. Its headings begin at the second level. */
export function renderReport(report: Report): string {
  const { backend, date, machine, versions, quick, delayMs = 0, again = [] } = report;
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `## ${backend}`,
    `${date}; ${machine}; ${names.join(', ')}${quick ? '; quick: too short to be trusted' : ''}`,
    ...(delayMs > 0 ? [`Each request and each reply was under way for ${delayMs} ms.`] : []),
    ...(again.length > 0 ? [`Measured again, in later runs than the rest: ${again.join(', ')}.`] : []),
    ...renderTargets(report),
    ...SCENARIOS.filter(({ point }) => point === undefined).flatMap((scenario) => renderScenario(report, scenario)),
    ...renderCurves(report),
    ...renderFailures(report),
  ].join('\n\n');
}

/** Returns the targets that the report has figures for, and whether they are met. */
function judgeTargets({ backend, results }: Report): readonly (Target & { reached: number; met: boolean })[] {
  return TARGETS[backend].flatMap((target) => {
    const result = results.find(
      ({ scenario, contestant }) => scenario === target.scenario && contestant === target.contestant,
    );
    if (!result) return [];
    const reached = result.figures[target.metric] ?? NaN;
    return [
      { ...target, reached, met: reached >= (target.atLeast ?? -Infinity) && reached <= (target.atMost ?? Infinity) },
    ];
  });
}

function renderTargets(report: Report): string[] {
  const rows = judgeTargets(report).map(({ scenario, contestant, metric, atLeast, atMost, reached, met }) => [
    scenario,
    contestant,
    COLUMNS[metric].heading,
    atLeast === undefined ? `≤ ${formatMetric(metric, atMost)}` : `≥ ${formatMetric(metric, atLeast)}`,
    formatMetric(metric, reached),
    met ? 'yes' : '**no**',
  ]);
  if (rows.length === 0) return [];
  return [renderTable(['scenario', 'who', 'what', 'target', 'reached', 'met'], rows)];
}

function renderScenario({ results }: Report, { id, title }: Scenario): string[] {
  const scenarioResults = results.filter(({ scenario }) => scenario === id);
  if (scenarioResults.length === 0) return [];
  const metrics = findShownMetrics(scenarioResults);
  const haveSameRounds = new Set(scenarioResults.map(({ rounds }) => rounds)).size === 1;
  const rows = scenarioResults.map(({ contestant, rounds, figures }) => [
    haveSameRounds ? contestant : `${contestant}, ${rounds} ${rounds === 1 ? 'round' : 'rounds'}`,
    ...metrics.map((metric) => formatMetric(metric, figures[metric])),
  ]);
  return [`### ${id}: ${title}`, renderTable(['', ...metrics.map((metric) => COLUMNS[metric].heading)], rows)];
}

/** Returns the metrics that have figures. Leaves out faults that happened to no contestant. */
function findShownMetrics(results: readonly Result[]): readonly Metric[] {
  const isShown = (metric: Metric): boolean =>
    results.some(
      ({ figures }) => !Number.isNaN(figures[metric] ?? NaN) && (!FAULTS.includes(metric) || figures[metric] !== 0),
    );
  return (Object.keys(COLUMNS) as Metric[]).filter(isShown);
}

function renderCurves({ results }: Report): string[] {
  const points = SCENARIOS.flatMap(({ id, point }) => (point ? [{ id, ...point }] : []));
  return [...new Set(points.map(({ curve }) => curve))].flatMap((curve) => {
    const rows = points
      .filter((point) => point.curve === curve)
      .flatMap(({ id, x }) => results.filter(({ scenario }) => scenario === id).map((result) => ({ x, result })));
    if (rows.length === 0) return [];
    const metrics = findShownMetrics(rows.map(({ result }) => result));
    return [
      `### From one to many: ${curve}`,
      renderTable(
        [curve, '', ...metrics.map((metric) => COLUMNS[metric].heading)],
        rows.map(({ x, result }) => [
          x.toLocaleString('en'),
          result.contestant,
          ...metrics.map((metric) => formatMetric(metric, result.figures[metric])),
        ]),
      ),
    ];
  });
}

function renderFailures({ results }: Report): string[] {
  const lines = results.flatMap(({ scenario, contestant, failure }) =>
    failure === undefined ? [] : [`- ${scenario}, ${contestant}: ${shortenMessage(failure)}`],
  );
  return lines.length === 0 ? [] : ['### The first failure of each', lines.join('\n')];
}

/** Returns the first line of a message, at most 200 characters of it. */
const shortenMessage = (text: string): string => (text.split('\n', 1)[0] ?? '').slice(0, 200);
