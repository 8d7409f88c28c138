interface Item {
  value: string;
  cas: bigint;
  /** Date of expiry in seconds since 1970; 0 for never. */
  exptime: number;
}

/** Below, an exptime is a duration. */
const DATES_FROM = 30 * 86_400;

/**
 * Answers as memcached 1.6.18 does to the backend, and keeps the same items: the truth in a test that needs
 * a hundred thousand answers. Compared with the real server in model-server.spec.ts.
 */
export class ModelServer {
  readonly items = new Map<string, Item>();
  /** In seconds since 1970. */
  now = 1_800_000_000;
  #cas = 0n;

  /** Runs what is written over a connection. Each command's answer by itself. */
  answer(text: string): string[] {
    const lines = text.split('\r\n').slice(0, -1);
    const answers: string[] = [];
    for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
      const [command = '', ...args] = line.split(' ');
      const value = ['add', 'cas'].includes(command) ? (lines.shift() ?? '') : '';
      answers.push(this.#run(command, args, value));
    }
    return answers;
  }

  /** Overwrites an item, whatever is stored, as another client would. */
  put(name: string, value: string, exptime: number): void {
    this.items.set(name, { value, cas: (this.#cas += 1n), exptime: this.#date(exptime) });
  }

  live(name: string): Item | undefined {
    const item = this.items.get(name);
    if (item && item.exptime !== 0 && item.exptime <= this.now) this.items.delete(name);
    return this.items.get(name);
  }

  #run(command: string, args: readonly string[], value: string): string {
    const [name = '', ...rest] = args;
    const item = this.live(name);
    switch (command) {
      case 'version':
        return 'VERSION 1.6.18\r\n';
      case 'mn':
        return 'MN\r\n';
      case 'mg':
        if (!item) return `EN${opaque(flagsOf(rest))}\r\n`;
        return `VA ${Buffer.byteLength(item.value)} c${item.cas} t${this.#left(item)}${opaque(flagsOf(rest))}\r\n${item.value}\r\n`;
      case 'ma':
        return this.#metaCount(name, flagsOf(rest));
      case 'md':
        if (item && String(item.cas) === flagsOf(rest).get('C')) this.items.delete(name);
        return `${!item ? 'NF' : this.live(name) ? 'EX' : 'HD'}${opaque(flagsOf(rest))}\r\n`;
      case 'add':
        if (item) return 'NOT_STORED\r\n';
        this.put(name, value, Number(rest[1]));
        return 'STORED\r\n';
      case 'cas':
        if (!item) return 'NOT_FOUND\r\n';
        if (String(item.cas) !== rest[3]) return 'EXISTS\r\n';
        this.put(name, value, Number(rest[1]));
        return 'STORED\r\n';
      case 'incr':
        if (!item) return 'NOT_FOUND\r\n';
        if (!/^\d+$/.test(item.value)) return 'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n';
        this.#increment(item);
        return `${item.value}\r\n`;
      case 'gets':
        return `${args.map((one) => this.#valueLine(one)).join('')}END\r\n`;
      default:
        return 'ERROR\r\n';
    }
  }

  #metaCount(name: string, flags: ReadonlyMap<string, string>): string {
    const item = this.live(name);
    if (item && !/^\d+$/.test(item.value)) return 'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n';
    if (item) this.#increment(item);
    else this.put(name, flags.get('J') ?? '0', Number(flags.get('N')));
    const value = this.live(name)?.value ?? '';
    return `VA ${value.length}${opaque(flags)}\r\n${value}\r\n`;
  }

  #increment(item: Item): void {
    item.value = String(BigInt(item.value) + 1n);
    item.cas = this.#cas += 1n;
  }

  #valueLine(name: string): string {
    const item = this.live(name);
    return item ? `VALUE ${name} 0 ${Buffer.byteLength(item.value)} ${item.cas}\r\n${item.value}\r\n` : '';
  }

  #left({ exptime }: Item): number {
    return exptime === 0 ? -1 : exptime - this.now;
  }

  #date(exptime: number): number {
    if (exptime === 0 || exptime > DATES_FROM) return exptime;
    return exptime < 0 ? this.now : this.now + exptime;
  }
}

function flagsOf(args: readonly string[]): ReadonlyMap<string, string> {
  return new Map(args.map((flag) => [flag.slice(0, 1), flag.slice(1)]));
}

function opaque(flags: ReadonlyMap<string, string>): string {
  const number = flags.get('O');
  return number === undefined ? '' : ` O${number}`;
}
