import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LeadsExplorer } from './leads.explorer.js';

/** Module of its own, so that Nest ends leaderships before the lock services. */
@Module({ imports: [DiscoveryModule], providers: [LeadsExplorer] })
export class LeadsModule {}
