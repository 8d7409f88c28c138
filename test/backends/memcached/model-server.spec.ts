import { expect, it } from '@jest/globals';
import { MemcachedServer } from '../../servers/memcached-server.js';
import { wantedOf } from '../describe-backend.js';
import { ModelServer } from './model-server.js';
import { Random } from '../../support/random.js';

const SEED = 42;
const COMMANDS = 3_000;

for (const _ of wantedOf(['memcached-meta'])) {
  it(`the model answers ${COMMANDS} commands as memcached does`, async () => {
    const server = await MemcachedServer.start();
    try {
      const [random, model] = [new Random(SEED), new ModelServer()];
      model.now = Number((await server.statistics()).get('time'));
      let [commands, expected] = ['', ''];
      for (let i = 0; i < COMMANDS; i += 1) {
        const command = commandOf(random, model);
        commands += command;
        expected += model.answer(command).join('');
      }
      const real = await server.ask(commands.slice(0, -'\r\n'.length));
      // The model's time stands still, so what it says is left may have become less by a second or two.
      const [ours, theirs] = [expected, real].map((text) => text.replaceAll(/ t\d+/g, ' t?').split('\r\n'));
      expect(ours?.filter((line) => line.startsWith('HD')).length).toBeGreaterThan(COMMANDS / 10);
      expect(ours).toEqual(theirs);
    } finally {
      await server.stop();
    }
  });
}

/** Commands that the backend sends, on a few names, with cas ids that are mostly right. */
function commandOf(random: Random, model: ModelServer): string {
  const { now } = model;
  const name = `n${random.below(6)}`;
  const value = random.oneOf(['1', '17', 'owner|{"host":"\u00fc"}', '']);
  const size = Buffer.byteLength(value);
  const cas = random.below(3) === 0 ? 1 + random.below(100) : (model.live(name)?.cas ?? 1);
  const date = random.oneOf([0, 100, now + 100, now - 5]);
  const opaque = `O${random.below(1_000).toString(36)}`;
  return random.oneOf([
    `ms ${name} ${size} ME T${date} ${opaque}\r\n${value}\r\n`,
    `ms ${name} ${size} C${cas} T${date} ${opaque}\r\n${value}\r\n`,
    `mg ${name} c t v ${opaque}\r\n`,
    `ma ${name} N100 J${now} D1 v ${opaque}\r\n`,
    `md ${name} C${cas} ${opaque}\r\n`,
    `add ${name} 0 ${date} ${size}\r\n${value}\r\n`,
    `cas ${name} 0 ${random.oneOf([date, -1])} ${size} ${cas}\r\n${value}\r\n`,
    `incr ${name} 1\r\n`,
    `gets ${name} n${random.below(6)}\r\n`,
    `bogus\r\n`,
  ]);
}
