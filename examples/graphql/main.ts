import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Mutation, Query, Resolver } from '@nestjs/graphql';
import { DistributedLockModule, Locked, LockService } from 'nestjs-distributed-lock';
import { memory } from 'nestjs-distributed-lock/memory';

@Resolver()
class SeatsResolver {
  @Query(() => String)
  theatre(): string {
    return 'Globe';
  }

  @Mutation(() => String)
  @Locked('seat_:id', { waitMs: 0 }) // @Args('id')
  async book(@Args('id') id: string): Promise<string> {
    return `booked ${id}`;
  }
}

@Module({
  imports: [
    DistributedLockModule.forRoot({ backend: memory(), exceptionFilter: true }),
    GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      includeStacktraceInErrorResponses: false,
      playground: false,
    }),
  ],
  providers: [SeatsResolver],
})
class AppModule {}

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(0, '127.0.0.1');
const url = `${await app.getUrl()}/graphql`;

const somebody = await app.get(LockService).acquire('seat_A1'); // books the same seat just now
console.log('while somebody books it:', await book('A1'));
await somebody.release();
console.log('afterwards:', await book('A1'));
await app.close();

async function book(id: string): Promise<string> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: `mutation { book(id: "${id}") }` }),
  });
  const { data, errors } = (await response.json()) as {
    data: { book: string } | null;
    errors?: { message: string; extensions: { code: string } }[];
  };
  return data?.book ?? `${errors?.[0]?.extensions.code}, ${errors?.[0]?.message}`;
}
