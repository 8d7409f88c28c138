import { Module } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { LeadsExplorer } from './leads.explorer.js';

/** A module of its own, because it starts and ends at other times than that of the locks. */
@Module({ imports: [DiscoveryModule], providers: [LeadsExplorer] })
export class LeadsModule {}
