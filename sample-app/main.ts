import { Logger } from '@nestjs/common';
import { createApp } from './create-app.js';
import { withoutCredentials } from './database/database-type.js';
import { readSettings } from './settings.js';

// The stampede starts this application as its child, which leaves nothing behind when the stampede dies.
if (process.send && !process.connected) process.exit();
process.once('disconnect', () => process.exit());

try {
  const settings = readSettings(process.env);
  const app = await createApp(settings);
  await app.listen(settings.port);
  const url = (await app.getUrl()).replace('[::1]', 'localhost');
  new Logger('FlashSale').log(`${url}  locks: ${settings.backend}, orders: ${withoutCredentials(settings.saleDb)}`);
  process.send?.({ url });
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
