import { BadRequestException, Injectable, type PipeTransform } from '@nestjs/common';

const MAX_NAME_LENGTH = 100;

/** Returns the `buyer` of a purchase's body. */
@Injectable()
export class BuyerPipe implements PipeTransform<unknown, string> {
  transform(body: unknown): string {
    const buyer = typeof body === 'object' && body !== null && 'buyer' in body ? body.buyer : undefined;
    if (typeof buyer === 'string' && isName(buyer)) return buyer;
    throw new BadRequestException(
      `the body must be {"buyer": "<name>"}, the name having 1 to ${MAX_NAME_LENGTH} characters, none of them NUL`,
    );
  }
}

/** Returns whether every database can store the text, and it is not blank. */
function isName(text: string): boolean {
  return text.trim() !== '' && text.length <= MAX_NAME_LENGTH && text.isWellFormed() && !text.includes('\0');
}
