import { Locked } from 'nestjs-distributed-lock';
import { Fenced } from 'nestjs-distributed-lock/typeorm';

describe('what @Fenced refuses when a class is made', () => {
  it('a static method, a property, a second one, a table name that is more than a name', () => {
    const fence = Fenced('sale') as MethodDecorator & PropertyDecorator;
    expect(() => {
      class Sale {
        readonly name = 'sale';
        @fence
        static async sell(): Promise<void> {}
      }
      return Sale;
    }).toThrow('@Fenced belongs on a method of instances');
    expect(() => {
      class Sale {
        @fence
        sell = async (): Promise<void> => undefined;
      }
      return Sale;
    }).toThrow('Sale.sell is not');
    expect(() => {
      class Sale {
        @Fenced('a')
        @Locked('lock')
        @Fenced('b')
        async sell(): Promise<void> {}
      }
      return Sale;
    }).toThrow('Sale.sell has two of @Fenced and @Fenced');
    expect(() => Fenced('sale', { tableName: 'fence; drop table sale' })).toThrow('plain identifier');
  });

  it.each([
    ['', 'must not be empty'],
    [':id:other', 'need something between'],
    ['\ud800', 'lone surrogate'],
  ])('the resource %j', (resource, why) => {
    expect(() => {
      class Sale {
        @Fenced(resource)
        @Locked('lock')
        async sell(_id: string): Promise<void> {}
      }
      return Sale;
    }).toThrow(why);
  });
});
