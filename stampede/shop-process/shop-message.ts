/** Message of a shop's process to the stampede: it serves, or begins to take a payment. */
export type ShopMessage = { readonly kind: 'open'; readonly url: string } | { readonly kind: 'paying' };
