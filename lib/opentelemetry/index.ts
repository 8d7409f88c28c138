/** Spans of waiting and holding, for OpenTelemetry. @module nestjs-distributed-lock/opentelemetry */
export { LockSpans, type LockSpansOptions } from './lock-spans.js';
export { LockTracingModule, type LockTracingModuleOptions } from './lock-tracing.module.js';
