import { readArguments, UsageError } from '../../stampede/arguments.js';

describe('the arguments of a stampede', () => {
  it('are all optional', () => {
    const plan = { backend: 'sqlite', via: 'locked', processes: 4, buyers: 2_000, stock: 100 };
    expect(readArguments([])).toMatchObject({
      ...plan,
      kill: false,
      freeze: false,
      killNodes: 0,
      unsafe: false,
      json: false,
    });
    expect(readArguments(['--backend', 'memory'])).toMatchObject({ processes: 1 });
    expect(readArguments(['--help'])).toBe('help');
  });

  it.each([
    [['--backend', 'paper'], 'memory; it was "paper"'],
    [['--backend', 'memory', '--processes', '2'], '--backend memory locks inside one process only'],
    [
      ['--via', 'telephone'],
      '--via must be one of locked, with-lock, by-service, without-fence, optimistic; it was "telephone"',
    ],
    [['--via', 'optimistic', '--kill'], 'with --via optimistic none has one'],
    [['--via', 'with-lock', '--unsafe'], '--unsafe sells in one way only'],
    [['--backend', 'redlock', '--kill-nodes', '3'], '--kill-nodes must be a whole number from 0 to 2; it was "3"'],
    [['--backend', 'redis-cluster', '--kill-nodes', '2'], '--kill-nodes must be a whole number from 0 to 1'],
    [['--kill-nodes', '1'], '--kill-nodes is for --backend redlock, redis-sentinel, redis-cluster: all'],
    [['--processes', '0'], '--processes must be a whole number from 1 to 16; it was "0"'],
    [['--stock', '0'], '--stock must be a whole number'],
    [['--buyers', 'many'], '--buyers must be a whole number'],
    [['--kill', '--freeze', '--processes', '2'], 'this needs --processes 3 or more'],
    [['--colour'], "Unknown option '--colour'"],
    [['fast'], "Unexpected argument 'fast'"],
  ])('refuse %j', (args, message) => {
    expect(() => readArguments(args)).toThrow(UsageError);
    expect(() => readArguments(args)).toThrow(message);
  });
});
