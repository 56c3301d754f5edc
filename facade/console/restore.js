// Gives an object the content of a past state: first a dry run, which shows what would change, then the write.

import { h, replace, failure } from './dom.js';
import { showDiff } from './diff.js';
import { comparable, restored } from './states.js';
import { printYaml } from './yaml.js';

// `current` is the object as it is, nothing where it is gone; revision 0 is its last state then.
export function askToRestore({ of, revision, current }) {
  const verb = current ? 'Restore' : 'Undelete';
  const what = revision === '0' ? 'as it was last' : `as of revision ${revision}`;
  const shown = h('div', { 'aria-live': 'polite' }, h('p.quiet', null, 'A dry run …'));
  const write = h('button.primary', { type: 'button', id: 'restore-now', disabled: true, onclick: () => send(false) }, verb);
  const cancel = h('button', { type: 'button', autofocus: true, onclick: () => dialog.close() }, 'Cancel');
  const leaving = new AbortController();
  const send = async (dryRun) => {
    write.disabled = true;
    try {
      const answer = await restored(of, revision, dryRun, leaving.signal);
      if (!dryRun) return dialog.close();
      replace(shown, answer.warnings.map((text) => h('p.warning', null, text)), h('h3', null, 'This would change'),
        showDiff(current ? printYaml(comparable(current)) : '', printYaml(comparable(answer.object))));
      write.disabled = false;
      write.focus();
    } catch (error) {
      if (!leaving.signal.aborted) replace(shown, failure(error));
    }
  };
  const dialog = h('dialog.wide', { 'aria-labelledby': 'restore-title' },
    h('h2', { id: 'restore-title' }, `${verb} ${of.name} ${what}?`),
    h('p.quiet', null, current ? 'Its identity, finalizers, owners and status stay; validation and admission see an update.'
      : 'It is a new object with another uid; owners that are gone are not named any more.'),
    shown, h('div.buttons', null, cancel, write));
  dialog.addEventListener('close', () => { leaving.abort(); dialog.remove(); });
  document.body.append(dialog);
  dialog.showModal();
  send(true);
}
