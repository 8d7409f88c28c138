/** A page about the locks of an application. @module nestjs-distributed-lock/inspector */
export { type InspectorGuard } from './inspector.controller.js';
export { LockInspectorModule, type LockInspectorOptions } from './lock-inspector.module.js';
export {
  type InspectedBackend,
  type InspectedEvent,
  type InspectedHolder,
  type InspectedKey,
  type InspectedParty,
  type InspectedTemplate,
  type InspectorState,
} from './inspector-state.js';
