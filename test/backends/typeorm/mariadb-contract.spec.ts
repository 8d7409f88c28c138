import { describeBackend } from '../describe-backend.js';

describeBackend('mariadb');
