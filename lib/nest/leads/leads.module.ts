import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LeadsExplorer } from './leads.explorer.js';

/** Module that starts and ends leaderships. It is separate because its end comes before that of the lock services. */
@Module({ imports: [DiscoveryModule], providers: [LeadsExplorer] })
export class LeadsModule {}
