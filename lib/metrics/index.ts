/** Metrics for Prometheus, over prom-client. @module nestjs-distributed-lock/metrics */
export { LockMetrics, type LockMetricsOptions, type ObserveOptions } from './lock-metrics.js';
export { LockMetricsModule, type LockMetricsModuleOptions } from './lock-metrics.module.js';
