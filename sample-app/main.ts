import { Logger } from '@nestjs/common';
import { createApp } from './create-app.js';
import { readSettings } from './settings.js';

const settings = readSettings(process.env);
const app = await createApp(settings);
await app.listen(settings.port);
const url = (await app.getUrl()).replace('[::1]', 'localhost');
new Logger('FlashSale').log(`Sale: ${url}, locks: ${url}/locks`);
