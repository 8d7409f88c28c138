import parse from 'parse-prometheus-text-format';
import { wantedOf } from '../support/wanted-backends.js';
import { Sale } from './sale.js';

const BUYERS = 200;

/** The metrics of the sales' locks, by their names without the prefix. */
async function scrape({ url }: Sale): Promise<(name: string) => number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  // The parser drops labels of histograms. Without the type their series are metrics by themselves.
  const metrics = parse(text.replaceAll(/^# TYPE \S+ histogram$/gmu, ''));
  return (name) => {
    const found = metrics.filter((metric) => metric.name === `distributed_lock_${name}`);
    const series = found.flatMap((metric) => metric.metrics);
    const wanted = series.filter(({ labels }) => labels?.['template']?.startsWith('lock_sale_:') ?? true);
    return wanted.reduce((sum, { value }) => sum + Number(value), 0);
  };
}

for (const name of wantedOf(['sqlite'])) {
  it(`metrics of two instances agree with what their buyers were told, on ${name}`, async () => {
    await using one = await Sale.open();
    await using other = await Sale.open({}, one.directory);
    const before = await scrape(one);
    const buying = Array.from({ length: BUYERS }, (_, n) => (n % 2 ? one : other).buy({ buyer: `b${n}` }));
    await Promise.race(buying);
    expect((await scrape(one))('waiting')).toBeGreaterThan(0);
    const told = (await Promise.all(buying)).filter(({ status }) => status === 201 || status === 409);
    const after = await scrape(other);
    const more = (metric: string) => after(metric) - before(metric);
    expect(told).toHaveLength(BUYERS);
    const acquisitions = more('acquisitions_total');
    // The job that restocks takes the lock as well, once in each full minute.
    expect([BUYERS, BUYERS + 1]).toContain(acquisitions);
    expect({
      waits: more('wait_seconds_count'),
      holds: more('hold_seconds_count'),
      timeouts: more('timeouts_total'),
      losses: more('losses_total'),
    }).toEqual({ waits: acquisitions, holds: acquisitions, timeouts: 0, losses: 0 });
    expect(after('waiting')).toBe(0);
    expect(after('held')).toBe(0);
    expect(after('backend_up')).toBe(1);
  });
}
