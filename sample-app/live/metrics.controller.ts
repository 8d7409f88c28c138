import { Controller, Get, Header } from '@nestjs/common';
import { register } from 'prom-client';

/** For Prometheus. */
@Controller('metrics')
export class MetricsController {
  @Get()
  @Header('content-type', register.contentType)
  read(): Promise<string> {
    return register.metrics();
  }
}
