import { BadRequestException, Injectable, type PipeTransform } from '@nestjs/common';

const LONGEST_NAME = 100;

/** The `buyer` of a purchase's body. */
@Injectable()
export class BuyerPipe implements PipeTransform<unknown, string> {
  transform(body: unknown): string {
    const buyer = typeof body === 'object' && body !== null && 'buyer' in body ? body.buyer : undefined;
    if (typeof buyer === 'string' && isName(buyer)) return buyer;
    throw new BadRequestException(
      `the body must be {"buyer": "<name>"}, the name having 1 to ${LONGEST_NAME} characters, none of them NUL`,
    );
  }
}

/** Characters that all three databases can store. */
function isName(text: string): boolean {
  return text.trim() !== '' && text.length <= LONGEST_NAME && text.isWellFormed() && !text.includes('\0');
}
