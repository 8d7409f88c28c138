export { freePort } from '../../servers/free-port.js';
