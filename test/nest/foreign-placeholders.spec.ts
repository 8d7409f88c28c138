import { Injectable } from '@nestjs/common';
import { Locked, LockConfigurationError } from 'nestjs-distributed-lock';

import { providing } from './apps.js';
import { Crossing } from './crossing.js';

/** Starts an application whose method is locked by this text. */
async function start(template: string): Promise<unknown> {
  @Injectable()
  class Documents {
    @Locked(template)
    async open(user: { id: string }, id: string): Promise<string> {
      return `${user.id} ${id}`;
    }
  }
  return providing(new Crossing(), Documents);
}

describe('a text that names an argument as other libraries do', () => {
  it.each(['doc_{id}', 'doc_{{id}}', 'doc_${id}', 'doc_#{id}', ':id_{other}'])(
    '%s is refused where it stands',
    (text) => expect(start(text)).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', option: 'key' }),
  );

  it.each(['user.id', 'doc_$id', 'doc_<id>', 'doc_[id]', 'doc_%id%', 'doc_@id', ':id/<user>'])(
    '%s is refused at the start, with what to write',
    async (text) => {
      const error: unknown = await start(text).catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(LockConfigurationError);
      expect(String(error)).toMatch(/one key for all calls.*Write :\w+ for its value/u);
    },
  );

  it.each(['id', 'restock', 'valid', 'userid', 'a.id', 'e-mail@ids.example', '100%'])('%s is a key', (text) =>
    expect(start(text)).resolves.toBeDefined(),
  );
});
