import { SCENARIOS } from '../scenarios/index.js';
import { type Line, renderSvg } from './plot.js';
import type { Report } from './report.js';

/** Returns the pictures of a report as SVG, by the names of their files. */
export function renderPlots(report: Report): Readonly<Record<string, string>> {
  const { backend } = report;
  const contentionLines = collectContentionLines(report);
  const waitLines = collectWaitLines(report);
  return {
    ...(contentionLines.length === 0
      ? {}
      : {
          [`${backend}-contention.svg`]: renderSvg({
            title: `${backend}: bursts of callers of one process, one key`,
            x: 'callers',
            y: 'acquisitions per second',
            lines: contentionLines,
          }),
        }),
    ...(waitLines.length === 0
      ? {}
      : {
          [`${backend}-waits.svg`]: renderSvg({
            title: `${backend}: 4 processes of 25 callers, one key, 2 ms inside`,
            x: 'so many percent of the callers waited longer',
            y: 'milliseconds',
            lines: waitLines,
          }),
        }),
  };
}

function collectContentionLines({ results }: Report): Line[] {
  const points = SCENARIOS.flatMap(({ id, point }) => (point?.curve === 'waiters' ? [{ id, x: point.x }] : []));
  const names = new Set(
    results.filter(({ scenario }) => points.some(({ id }) => id === scenario)).map((r) => r.contestant),
  );
  return Array.from(names, (name) => ({
    name,
    points: points.map(({ id, x }) => {
      const found = results.find(({ scenario, contestant }) => scenario === id && contestant === name);
      return [x, found?.figures.perSecond ?? 0];
    }),
  }));
}

function collectWaitLines({ results }: Report): Line[] {
  return results.flatMap(({ scenario, contestant, waitsMs }) =>
    scenario === 'S4b' && waitsMs
      ? [{ name: contestant, points: waitsMs.map((ms, percent) => [100 - percent, ms]) }]
      : [],
  );
}
