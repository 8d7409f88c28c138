import { LockConfigurationError } from '../../core/index.js';
import { addParameterMetadata } from './parameter-metadata.js';

/**
 * Names a parameter for the key: with `@LockKey('id') orderId: string`, `:id` is its value, and `:id.part` a property
 * of it. It comes before every other source of the name, and survives minifiers.
 * @throws LockConfigurationError two parameters with one name
 */
export function LockKey(name: string): ParameterDecorator {
  return (target, method, index) => {
    addParameterMetadata(`@LockKey('${name}')`, target, method, ({ keys }) => {
      if (keys.has(name)) throw new LockConfigurationError(`${String(method)} has two @LockKey('${name}')`, 'key');
      return { keys: new Map(keys).set(name, index) };
    });
  };
}
