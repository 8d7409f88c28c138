import { ClassicDialect } from '../../../lib/backends/memcached/classic/classic-dialect.js';
import type { Commands } from '../../../lib/backends/memcached/transport/pipeline.js';
import type { MemcachedDialect } from '../../../lib/backends/memcached/dialect.js';
import { MetaDialect } from '../../../lib/backends/memcached/meta-dialect.js';
import { Pipeline } from '../../../lib/backends/memcached/transport/pipeline.js';
import { describeWanted, failureOf, wantedOf } from '../../support/index.js';

const NAMES = { lease: 'l', counter: 'f' };
const LEASE = { names: NAMES, value: 'me|9|\u00fc', exptime: 9 };

/** A connection whose other end says what the test says. */
class Script {
  sent = '';
  readonly pipeline = new Pipeline();

  exchange<Results extends readonly unknown[]>(...commands: Commands<Results>): Promise<Results> {
    this.sent += commands.map(({ text }) => text).join('');
    return this.pipeline.expectReplies(commands, 0);
  }

  /** Reads a reply as a connection does, which ends when a reply does not fit. */
  receive(text: string): void {
    try {
      this.pipeline.receive(Buffer.from(text));
    } catch (error) {
      this.pipeline.fail(error);
    }
  }
}

type Question = (dialect: MemcachedDialect) => Promise<unknown>;
const acquireLease: Question = (dialect) => dialect.acquireLease(LEASE, 100n);
const incrementCounter: Question = (dialect) => dialect.incrementCounter(NAMES, 100n);
const replaceAndGetItem: Question = (dialect) => dialect.replaceAndGetItem(LEASE, '7');
const getItem: Question = (dialect) => dialect.getItem('l');
const deleteItem: Question = (dialect) => dialect.deleteItem('l', '7');
const addItem: Question = (dialect) => dialect.addItem('l', 'x', 0);

describeWanted(['memcached-meta'], 'the meta commands', () => {
  it.each([
    [acquireLease, 'add l 0 9 7\r\nme|9|\u00fc\r\nma f N600 J100 D1 v O1\r\nmg l c t v O2\r\n'],
    [incrementCounter, 'ma f N600 J100 D1 v O1\r\n'],
    [replaceAndGetItem, 'cas l 0 9 7 7\r\nme|9|\u00fc\r\nmg l c t v O1\r\n'],
    [getItem, 'mg l c t v O1\r\n'],
    [deleteItem, 'md l C7 O1\r\n'],
    [addItem, 'add l 0 0 1\r\nx\r\nmg l c t v O1\r\n'],
  ])('are these, in one write (%#)', (question, sent) => {
    const script = new Script();
    question(new MetaDialect(script)).catch(() => undefined);
    expect(script.sent).toBe(sent);
  });

  const item = { value: 'me', cas: '8', remainingS: 4 };
  it.each([
    [acquireLease, 'STORED\r\nVA 3 O1\r\n101\r\nVA 2 c8 t4 O2\r\nme\r\n', { isAdded: true, token: 101n, item }],
    [acquireLease, 'NOT_STORED\r\nVA 3 O1\r\n101\r\nEN O2\r\n', { isAdded: false, token: 101n, item: null }],
    [replaceAndGetItem, 'STORED\r\nVA 2 c8 t-1 O1\r\nme\r\n', { ...item, remainingS: Infinity }],
    [replaceAndGetItem, 'EXISTS\r\nVA 2 c8 t4 W X O1\r\nme\r\n', item],
    [replaceAndGetItem, 'NOT_FOUND\r\nEN\r\n', null],
    [getItem, 'VA 2 t4 c8 O1\r\nme\r\n', item],
    [deleteItem, 'HD O1\r\n', true],
    [deleteItem, 'EX O1\r\n', false],
    [deleteItem, 'NF O1\r\n', false],
  ])('are answered like this (%#)', async (question, reply, result) => {
    await expect(answered(MetaDialect, question, reply)).resolves.toEqual(result);
  });

  it.each([
    ['the answer to another question', deleteItem, 'HD O2\r\n'],
    ['an answer to no question', deleteItem, 'HD\r\n'],
    ['a miss where nothing was read', deleteItem, 'EN O1\r\n'],
    ['an item without a cas id', getItem, 'VA 2 t4 O1\r\nme\r\n'],
    ['an item of a server that has no cas ids', getItem, 'VA 2 c0 t4 O1\r\nme\r\n'],
    ['an item that does not say how long it stays', getItem, 'VA 2 c8 O1\r\nme\r\n'],
    ['a hit without an item', getItem, 'HD c8 t4 O1\r\n'],
    ['a counter that is none', incrementCounter, 'VA 2 O1\r\nme\r\n'],
    ['an answer of version 1.6.6', deleteItem, 'OK O1\r\n'],
    ['an answer of the classic commands', deleteItem, 'STORED\r\n'],
    ['an error', getItem, 'ERROR\r\n'],
    ['an error in our data', addItem, 'CLIENT_ERROR bad data chunk\r\n'],
  ])('are not answered like this: %s', async (_what, question, reply) => {
    await expect(failureOf(answered(MetaDialect, question, reply))).resolves.toMatchObject({ kind: 'protocol' });
  });
});

describeWanted(['memcached-classic'], 'the classic commands', () => {
  it.each([
    [acquireLease, 'add l 0 9 7\r\nme|9|\u00fc\r\nincr f 1\r\ngets l f\r\n'],
    [incrementCounter, 'add f 0 600 3\r\n100\r\nincr f 1\r\ngets f\r\n'],
    [replaceAndGetItem, 'cas l 0 9 7 7\r\nme|9|\u00fc\r\ngets l\r\n'],
    [getItem, 'gets l\r\n'],
    [deleteItem, 'cas l 0 -1 0 7\r\n\r\n'],
    [addItem, 'add l 0 0 1\r\nx\r\ngets l\r\n'],
  ])('are these, in one write (%#)', (question, sent) => {
    const script = new Script();
    question(new ClassicDialect(script)).catch(() => undefined);
    expect(script.sent).toBe(sent);
  });

  const item = { value: 'me', cas: '8' };
  const [ours, counter] = ['VALUE l 0 2 8\r\nme\r\n', 'VALUE f 0 3 9\r\n101\r\n'];
  it.each([
    [acquireLease, `STORED\r\n101\r\n${ours}${counter}END\r\n`, { isAdded: true, token: 101n, item }],
    [acquireLease, `NOT_STORED\r\n101\r\n${counter}END\r\n`, { isAdded: false, token: 101n, item: null }],
    [incrementCounter, `NOT_STORED\r\n101\r\n${counter}END\r\n`, 101n],
    [replaceAndGetItem, `STORED\r\n${ours}END\r\n`, item],
    [replaceAndGetItem, 'NOT_FOUND\r\nEND\r\n', null],
    [getItem, 'END\r\n', null],
    [deleteItem, 'STORED\r\n', true],
    [deleteItem, 'EXISTS\r\n', false],
    [deleteItem, 'NOT_FOUND\r\n', false],
  ])('are answered like this (%#)', async (question, reply, result) => {
    await expect(answered(ClassicDialect, question, reply)).resolves.toEqual(result);
  });

  it('begin a counter where there is none', async () => {
    const script = new Script();
    const asked = new ClassicDialect(script).acquireLease(LEASE, 100n);
    script.sent = '';
    script.receive(`STORED\r\nNOT_FOUND\r\n${ours}END\r\n`);
    await new Promise(setImmediate);
    expect(script.sent).toBe('add f 0 600 3\r\n100\r\nincr f 1\r\ngets f\r\n');
    script.receive(`STORED\r\n101\r\n${counter}END\r\n`);
    await expect(asked).resolves.toEqual({ isAdded: true, token: 101n, item });
  });

  it.each([
    ['an item under another name', getItem, 'VALUE x 0 2 8\r\nme\r\nEND\r\n'],
    ['an item twice', getItem, `${ours}${ours}END\r\n`],
    ['items in another order', acquireLease, `STORED\r\n101\r\n${counter}${ours}END\r\n`],
    ['an item without a cas id', getItem, 'VALUE l 0 2\r\nme\r\nEND\r\n'],
    ['a counter that is none', incrementCounter, 'STORED\r\nabc\r\n'],
    ['an answer of the meta commands', deleteItem, 'HD\r\n'],
    ['an error', getItem, 'ERROR\r\n'],
  ])('are not answered like this: %s', async (_what, question, reply) => {
    await expect(failureOf(answered(ClassicDialect, question, reply))).resolves.toMatchObject({ kind: 'protocol' });
  });
});

for (const name of wantedOf(['memcached-meta', 'memcached-classic'])) {
  const DialectClass = name === 'memcached-meta' ? MetaDialect : ClassicDialect;
  const NO_NUMBER = 'CLIENT_ERROR cannot increment or decrement non-numeric value\r\n';
  const MISS = name === 'memcached-meta' ? 'EN\r\n' : 'END\r\n';

  it.each([
    ['out of memory', 'SERVER_ERROR out of memory storing object\r\n'],
    ['a counter of text', NO_NUMBER],
  ])(`${name}: a refusal is the command's, and the connection goes on: %s`, async (_what, refusal) => {
    const script = new Script();
    const dialect = new DialectClass(script);
    const refused = failureOf(acquireLease(dialect));
    const next = dialect.getItem('l');
    script.receive(`NOT_STORED\r\n${refusal}${MISS}${MISS}`);
    await expect(refused).resolves.toMatchObject({ kind: 'refused' });
    await expect(next).resolves.toBeNull();
  });
}

function answered(
  DialectClass: new (script: Script) => MemcachedDialect,
  question: Question,
  reply: string,
): Promise<unknown> {
  const script = new Script();
  const asked = question(new DialectClass(script));
  script.receive(reply);
  return asked;
}
