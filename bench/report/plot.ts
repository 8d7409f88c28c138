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
/** Told apart by people who do not see all colours: Okabe and Ito's, and then dashed. */
const COLOURS = ['#0072b2', '#d55e00', '#009e73', '#cc79a7', '#e69f00', '#56b4e9', '#000000'];

/** Both axes are logarithmic: locks differ by orders of magnitude. */
export function svg({ title, x, y, lines }: Plot): string {
  const shownLines = lines.map((line) => ({ ...line, points: line.points.filter(([a, b]) => a > 0 && b > 0) }));
  const all = shownLines.flatMap(({ points }) => points);
  const across = axis(
    all.map(([value]) => value),
    LEFT,
    WIDTH - RIGHT,
  );
  const up = axis(
    all.map(([, value]) => value),
    HEIGHT - BOTTOM,
    TOP,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>`,
    `<text x="${LEFT}" y="22" font-size="15">${escaped(title)}</text>`,
    ...across.ticks.map(
      (tick) =>
        `<path d="M${across.at(tick)} ${TOP}V${HEIGHT - BOTTOM}" stroke="#ddd"/>` +
        `<text x="${across.at(tick)}" y="${HEIGHT - BOTTOM + 18}" text-anchor="middle">${tick.toLocaleString('en')}</text>`,
    ),
    ...up.ticks.map(
      (tick) =>
        `<path d="M${LEFT} ${up.at(tick)}H${WIDTH - RIGHT}" stroke="#ddd"/>` +
        `<text x="${LEFT - 8}" y="${up.at(tick) + 4}" text-anchor="end">${tick.toLocaleString('en', { maximumFractionDigits: 6 })}</text>`,
    ),
    `<text x="${(LEFT + WIDTH - RIGHT) / 2}" y="${HEIGHT - 10}" text-anchor="middle">${escaped(x)}</text>`,
    `<text transform="rotate(-90)" x="${-(TOP + HEIGHT - BOTTOM) / 2}" y="16" text-anchor="middle">${escaped(y)}</text>`,
    ...shownLines.flatMap(({ name, points }, place) => {
      const path = points.map(([a, b]) => `${across.at(a)} ${up.at(b)}`).join('L');
      const dash = place < COLOURS.length ? '' : ' stroke-dasharray="6 3"';
      const style = `stroke="${COLOURS[place % COLOURS.length]}" stroke-width="2"${dash}`;
      const key = TOP + 8 + place * 20;
      return [
        ...(path === '' ? [] : [`<path d="M${path}" fill="none" ${style}/>`]),
        `<path d="M${WIDTH - RIGHT + 14} ${key}h24" ${style}/>`,
        `<text x="${WIDTH - RIGHT + 44}" y="${key + 4}">${escaped(name)}</text>`,
      ];
    }),
    '</svg>\n',
  ].join('\n');
}

interface Axis {
  /** Powers of ten around all values. */
  readonly ticks: readonly number[];
  readonly at: (value: number) => number;
}

function axis(values: readonly number[], from: number, to: number): Axis {
  const logs = values.map(Math.log10);
  const first = Math.floor(Math.min(0, ...logs));
  const last = Math.max(first + 1, Math.ceil(Math.max(0, ...logs)));
  return {
    ticks: Array.from({ length: last - first + 1 }, (_, place) => 10 ** (first + place)),
    at: (value) => Math.round((from + ((Math.log10(value) - first) / (last - first)) * (to - from)) * 10) / 10,
  };
}

function escaped(text: string): string {
  return text.replace(/[<>&]/gu, (character) => `&#${character.charCodeAt(0)};`);
}
