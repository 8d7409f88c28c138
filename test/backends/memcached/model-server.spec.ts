import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { wantedOf } from '../../support/wanted-backends.js';
import { ModelServer } from './model-server.js';
import { Random } from '../../support/random.js';

const SEED = 42;
const COMMANDS = 3_000;

for (const _ of wantedOf(['memcached-meta'])) {
  it(`the model answers ${COMMANDS} commands as memcached does`, async () => {
    const server = await MemcachedServer.start();
    const socket = connect(server.port, '127.0.0.1');
    try {
      const [random, model] = [new Random(SEED), new ModelServer()];
      model.now = Number((await server.statistics()).get('time'));
      const lines = createInterface({ input: socket })[Symbol.asyncIterator]();
      const [ours, theirs]: [string[], string[]] = [[], []];
      const realCas = new Map<string, string>();
      for (let i = 0; i < COMMANDS; i += 1) {
        const { name, command } = commandOf(random, model);
        const cas = String(model.live(name)?.cas);
        ours.push(...comparable(model.answer(command.replace(CAS, cas)).join('')));
        // Some servers use up a number for a command that changes nothing: what counts is which of them is the item's.
        socket.write(`${command.replace(CAS, realCas.get(name) ?? cas)}mg ${name} c\r\nmn\r\n`);
        const answer: string[] = [];
        for (let line = await nextOf(lines); line !== 'MN'; line = await nextOf(lines)) answer.push(line);
        const [, found] = /^HD c(?<cas>\d+)$/u.exec(answer.pop() ?? '') ?? [];
        if (found === undefined) realCas.delete(name);
        else realCas.set(name, found);
        theirs.push(...comparable(answer.map((line) => `${line}\r\n`).join('')));
      }
      expect(ours.filter((line) => line === 'STORED').length).toBeGreaterThan(COMMANDS / 20);
      expect(theirs).toEqual(ours);
    } finally {
      socket.destroy();
      await server.stop();
    }
  });
}

/** Stands in a command for the number that the item has on the server that is asked. */
const CAS = '<cas>';

/** The model's time stands still, so what it says is left may have become less by a second or two. */
function comparable(answer: string): string[] {
  return answer
    .replaceAll(/ t\d+/gu, ' t?')
    .replaceAll(/ c\d+/gu, ' c?')
    .replaceAll(/^(VALUE \S+ \d+ \d+) \d+\r$/gmu, '$1 c?\r')
    .split('\r\n');
}

async function nextOf(lines: AsyncIterator<string>): Promise<string> {
  const { value, done } = await lines.next();
  if (done) throw new Error('memcached has ended the connection');
  return value;
}

/** A command that the backend sends, about one of a few names, with a cas id that is mostly right. */
function commandOf(random: Random, model: ModelServer): { readonly name: string; readonly command: string } {
  const { now } = model;
  const name = `n${random.below(6)}`;
  const value = random.oneOf(['1', '17', 'owner|{"host":"\u00fc"}', '']);
  const size = Buffer.byteLength(value);
  const cas = random.below(3) === 0 || !model.live(name) ? String(2 ** 40 + random.below(100)) : CAS;
  const date = random.oneOf([0, 100, now + 100, now - 5]);
  const opaque = `O${random.below(1_000).toString(36)}`;
  const command = random.oneOf([
    `mg ${name} c t v ${opaque}\r\n`,
    `ma ${name} N100 J${now} D1 v ${opaque}\r\n`,
    `md ${name} C${cas} ${opaque}\r\n`,
    `add ${name} 0 ${date} ${size}\r\n${value}\r\n`,
    `cas ${name} 0 ${random.oneOf([date, -1])} ${size} ${cas}\r\n${value}\r\n`,
    `incr ${name} 1\r\n`,
    `gets ${name} n${random.below(6)}\r\n`,
    `bogus\r\n`,
  ]);
  return { name, command };
}
