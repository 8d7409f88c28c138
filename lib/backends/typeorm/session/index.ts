export { sessionBackend, type SessionBackendOptions } from './session-backend.js';
