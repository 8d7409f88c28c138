import type { InspectedHolder } from '../inspector-state.js';
import { evictOwner } from './client.js';
import { getElement, setText } from './elements.js';
import type { ListedKey } from './listed-key.js';
import { showNotice } from './notice.js';
import { describeError, describeProcess, escapeKey, formatTime, shortenKey } from './texts.js';

const dialog = getElement('confirm', HTMLDialogElement);

/** Frees a key if the user confirms it in the dialog. Returns whether the user confirmed. */
export async function freeKey(entry: ListedKey): Promise<boolean> {
  const { key, holder } = entry;
  if (!holder || !(await confirmFreeing(entry, holder))) return false;
  const refusal = await evictOwner(entry, holder.owner).catch(describeError);
  if (refusal === undefined) showNotice(`${shortenKey(key)} is taken from ${describeProcess(holder)}.`, 'good');
  else showNotice(`Not freed: ${refusal}`);
  return true;
}

async function confirmFreeing({ prefix, key }: ListedKey, holder: InspectedHolder): Promise<boolean> {
  const since = holder.since === undefined ? '' : `, since ${formatTime(holder.since)}`;
  setText(getElement('confirm-key', HTMLElement), prefix + escapeKey(key));
  setText(getElement('confirm-holder', HTMLElement), `${describeProcess(holder)} holds it${since}.`);
  dialog.returnValue = 'cancel';
  dialog.showModal();
  await new Promise((resolve) => dialog.addEventListener('close', resolve, { once: true }));
  return dialog.returnValue === 'free';
}
