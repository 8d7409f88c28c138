export interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

export interface Plot {
  readonly title: string;
  readonly x: string;
  readonly y: string;
  readonly lines: readonly Line[];
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [900, 460, 80, 230, 40, 50];
/** Colours by Okabe and Ito, which people with colour blindness can distinguish. Further lines are dashed. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'];

/** Returns a plot as SVG. Both axes are logarithmic, since locks differ by orders of magnitude. */
export function renderSvg({ title, x, y, lines }: Plot): string {
  const shownLines = lines.map((line) => ({ ...line, points: line.points.filter(([a, b]) => a > 0 && b > 0) }));
  const all = shownLines.flatMap(({ points }) => points);
  const xAxis = createAxis(
    all.map(([value]) => value),
    LEFT,
    WIDTH - RIGHT,
  );
  const yAxis = createAxis(
    all.map(([, value]) => value),
    HEIGHT - BOTTOM,
    TOP,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<text x="${LEFT}" y="22" font-size="15">${escapeXml(title)}</text>`,
    ...xAxis.ticks.map(
      (tick) =>
        `<path d="M${xAxis.at(tick)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#ddd"/>` +
        `<text x="${xAxis.at(tick)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${tick.toLocaleString('en')}</text>`,
    ),
    ...yAxis.ticks.map(
      (tick) =>
        `<path d="M${LEFT} ${yAxis.at(tick)}H${WIDTH - RIGHT}" stroke="#ddd"/>` +
        `<text x="${LEFT - 8}" y="${yAxis.at(tick) + 4}" text-anchor="end">${tick.toLocaleString('en', { maximumFractionDigits: 6 })}</text>`,
    ),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${escapeXml(x)}</text>`,
    `<text transform="rotate(-90)" x="${-(TOP + HEIGHT - BOTTOM) / 2}" y="16" text-anchor="middle">${escapeXml(y)}</text>`,
    ...shownLines.flatMap(({ name, points }, place) => {
      const path = points.map(([a, b]) => `${xAxis.at(a)} ${yAxis.at(b)}`).join('L');
      const dash = place < COLOURS.length ? '' : ' stroke-dasharray="6 3"';
      const style = `stroke="${COLOURS[place % COLOURS.length]}" stroke-width="2"${dash}`;
      const key = TOP + 8 + place * 20;
      return [
        ...(path === '' ? [] : [`<path d="M${path}" fill="none" ${style}/>`]),
        `<path d="M${WIDTH - RIGHT + 14} ${key}h24" ${style}/>`,
        `<text x="${WIDTH - RIGHT + 44}" y="${key + 4}">${escapeXml(name)}</text>`,
      ];
    }),
    '</svg>\n',
  ].join('\n');
}

interface Axis {
  /** Powers of ten, from below the least value to above the greatest. */
  readonly ticks: readonly number[];
  readonly at: (value: number) => number;
}

function createAxis(values: readonly number[], from: number, to: number): Axis {
  const logs = values.map(Math.log10);
  const first = Math.floor(Math.min(0, ...logs));
  const last = Math.max(first + 1, Math.ceil(Math.max(0, ...logs)));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, place) => 10 ** (first + place)),
    at: (value) => Math.round((from + ((Math.log10(value) - first) / (last - first)) * (to - from)) * 10) / 10,
  };
}

function escapeXml(text: string): string {
  return text.replace(/[<>&]/gu, (character) => `&#${character.charCodeAt(0)};`);
}
