export { freePort } from '../../sample-app/stampede/servers/free-port.js';
