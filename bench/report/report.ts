import type { Result } from '../championship.js';
import type { BackendName } from '../competitions.js';
import { SCENARIOS } from '../scenarios/index.js';
import { FAULTS, type Metric, type Scenario } from '../scenarios/scenario.js';
import { type Target, TARGETS } from '../targets.js';
import { COLUMNS, shown } from './columns.js';
import { markdownTable } from './markdown-table.js';

/** One run, or what was kept of several: all that `--json` shows. */
export interface Report {
  readonly backend: BackendName;
  readonly date: string;
  readonly machine: string;
  readonly versions: Readonly<Record<string, string>>;
  readonly quick: boolean;
  readonly results: readonly Result[];
  /** Scenarios that were measured again, each in a later run than the rest. */
  readonly again?: readonly string[];
}

/** The report in Markdown, from the second level of headings. */
export function markdown(report: Report): string {
  const { backend, date, machine, versions, quick, again = [] } = report;
  const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return [
    `## ${backend}`,
    `${date}; ${machine}; ${names.join(', ')}${quick ? '; quick: too short to be trusted' : ''}`,
    ...(again.length > 0 ? [`Measured again, in later runs than the rest: ${again.join(', ')}.`] : []),
    ...targetsTable(report),
    ...SCENARIOS.filter(({ point }) => point === undefined).flatMap((scenario) => scenarioTable(report, scenario)),
    ...curveTables(report),
    ...failureList(report),
  ].join('\n\n');
}

/** The targets that this run has measured. */
function judged({ backend, results }: Report): readonly (Target & { reached: number; met: boolean })[] {
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

function targetsTable(report: Report): string[] {
  const rows = judged(report).map(({ scenario, contestant, metric, atLeast, atMost, reached, met }) => [
    scenario,
    contestant,
    COLUMNS[metric].heading,
    atLeast === undefined ? `≤ ${shown(metric, atMost)}` : `≥ ${shown(metric, atLeast)}`,
    shown(metric, reached),
    met ? 'yes' : '**no**',
  ]);
  if (rows.length === 0) return [];
  return [markdownTable(['scenario', 'who', 'what', 'target', 'reached', 'met'], rows)];
}

function scenarioTable({ results }: Report, { id, title }: Scenario): string[] {
  const ofIt = results.filter(({ scenario }) => scenario === id);
  if (ofIt.length === 0) return [];
  const metrics = metricsOf(ofIt);
  const rows = ofIt.map(({ contestant, figures }) => [
    contestant,
    ...metrics.map((metric) => shown(metric, figures[metric])),
  ]);
  return [`### ${id}: ${title}`, markdownTable(['', ...metrics.map((metric) => COLUMNS[metric].heading)], rows)];
}

/** A column is left out where nothing went wrong for anybody. */
function metricsOf(results: readonly Result[]): readonly Metric[] {
  const told = (metric: Metric): boolean =>
    results.some(
      ({ figures }) => !Number.isNaN(figures[metric] ?? NaN) && (!FAULTS.includes(metric) || figures[metric] !== 0),
    );
  return (Object.keys(COLUMNS) as Metric[]).filter(told);
}

function curveTables({ results }: Report): string[] {
  const points = SCENARIOS.flatMap(({ id, point }) => (point ? [{ id, ...point }] : []));
  return [...new Set(points.map(({ curve }) => curve))].flatMap((curve) => {
    const rows = points
      .filter((point) => point.curve === curve)
      .flatMap(({ id, x }) => results.filter(({ scenario }) => scenario === id).map((result) => ({ x, result })));
    if (rows.length === 0) return [];
    const metrics = metricsOf(rows.map(({ result }) => result));
    return [
      `### From one to many: ${curve}`,
      markdownTable(
        [curve, '', ...metrics.map((metric) => COLUMNS[metric].heading)],
        rows.map(({ x, result }) => [
          x.toLocaleString('en'),
          result.contestant,
          ...metrics.map((metric) => shown(metric, result.figures[metric])),
        ]),
      ),
    ];
  });
}

function failureList({ results }: Report): string[] {
  const lines = results.flatMap(({ scenario, contestant, failure }) =>
    failure === undefined ? [] : [`- ${scenario}, ${contestant}: ${firstLine(failure)}`],
  );
  return lines.length === 0 ? [] : ['### The first failure of each', lines.join('\n')];
}

const firstLine = (text: string): string => (text.split('\n', 1)[0] ?? '').slice(0, 200);
