import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LeadsExplorer } from './leads.explorer.js';

/** Module that starts and ends leaderships. It is a module of its own so that Nest ends it before the lock services. */
@Module({ imports: [DiscoveryModule], providers: [LeadsExplorer] })
export class LeadsModule {}
