import { type DynamicModule, Module } from '@nestjs/common';
import type { Settings } from './settings.js';

export const SETTINGS = Symbol('SETTINGS');

@Module({})
export class SettingsModule {
  static with(settings: Settings): DynamicModule {
    return {
      module: SettingsModule,
      global: true,
      providers: [{ provide: SETTINGS, useValue: settings }],
      exports: [SETTINGS],
    };
  }
}
