import { describeBackend } from '../describe-backend.js';

describeBackend('sqlite-driver');
