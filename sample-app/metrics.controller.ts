import { Controller, Get, Header } from '@nestjs/common';
import { register } from 'prom-client';

/** Serves the metrics of the locks to Prometheus. */
@Controller('metrics')
export class MetricsController {
  @Get()
  @Header('content-type', register.contentType)
  read(): Promise<string> {
    return register.metrics();
  }
}
