import { LockConfigurationError } from '../../core/index.js';
import { addParameterMetadata } from './parameter-metadata.js';

/**
 * Names a parameter for the key: with `@LockKey('id') orderId: string`, `:id` is its value, and `:id.part` a property
 * of the value. This name takes precedence over every other source of `:id`, and minifiers keep it.
 * @throws LockConfigurationError when two parameters have one name
 */
export function LockKey(name: string): ParameterDecorator {
  return (target, method, index) => {
    addParameterMetadata(`@LockKey('${name}')`, target, method, ({ keyPositions }) => {
      if (keyPositions.has(name))
        throw new LockConfigurationError(`${String(method)} has two @LockKey('${name}')`, 'key');
      return { keyPositions: new Map(keyPositions).set(name, index) };
    });
  };
}
