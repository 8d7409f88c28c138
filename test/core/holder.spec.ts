import { jest } from '@jest/globals';
import { packHolder, unpackHolder } from 'nestjs-distributed-lock/core';

it('the description of a holder has the time at which it was written, to the millisecond', () => {
  const metadata = { host: 'h', pid: 1, label: 'l' };
  const now = jest.spyOn(Date, 'now');
  try {
    for (const time of [1_700_000_000_000, 1_700_000_000_000, 1_700_000_000_001]) {
      now.mockReturnValue(time);
      expect(unpackHolder(packHolder(metadata))).toEqual({ ...metadata, since: new Date(time) });
    }
  } finally {
    now.mockRestore();
  }
});
