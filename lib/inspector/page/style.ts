/** A mark that is no part of a name has an empty one for those who hear the page. */
export const style: string = /* CSS */ `
:root {
  color-scheme: light dark;
  --ground: #f6f7f9; --card: #fff; --text: #1b2330; --quiet: #5b6675; --line: #dfe3e9;
  --accent: #1f5fd0; --good: #17713c; --warn: #8a5a00; --bad: #b3261e; --bad-ground: #fdecea;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161c; --card: #1a2028; --text: #e4e9f0; --quiet: #97a3b3; --line: #2c3541;
    --accent: #82b1ff; --good: #6fd093; --warn: #f0bd5c; --bad: #ff8a80; --bad-ground: #3a1f1e;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.45 system-ui, sans-serif; }
header, main { max-width: 82rem; margin: 0 auto; padding: 0 1.25rem; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem 1.25rem; padding-top: 1rem; }
h1 { font-size: 1.4rem; margin: 0; }
h2 { font-size: 1rem; margin: 0; }
small, .quiet { color: var(--quiet); font-weight: 400; font-size: .85rem; }
code, .key { unicode-bidi: isolate; overflow-wrap: anywhere; }
code, .key, td.token {
  font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: .9em; overflow-wrap: anywhere;
}
ul, ol { list-style: none; margin: 0; padding: 0; }
#backends { display: flex; flex-wrap: wrap; gap: .5rem; }
#backends li {
  border: 1px solid var(--line); border-radius: 1rem; padding: .1rem .7rem; background: var(--card); font-size:
  .85rem;
}
#backends li::before, #connection::before { content: '●'; content: '●' / ''; margin-right: .4rem; color: var(--quiet); }
[data-state='up']::before, [data-state='live']::before { color: var(--good) !important; }
[data-state='down']::before, [data-state='lost']::before { color: var(--bad) !important; }
#connection { margin: 0 0 0 auto; font-size: .85rem; color: var(--quiet); }
.figures { display: grid; grid-template-columns: repeat(4, 1fr); gap: .75rem; margin: 1rem 0; }
.figures div, section, dialog { background: var(--card); border: 1px solid var(--line); border-radius: .6rem; }
.figures div { padding: .6rem 1rem; }
.figures dt { color: var(--quiet); font-size: .85rem; }
.figures dd { margin: 0; font-size: 1.6rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.figures dd.bad { color: var(--bad); }
#notice {
  background: var(--bad-ground); color: var(--bad); border-radius: .6rem; padding: .6rem 1rem; white-space:
  pre-line; overflow-wrap: anywhere;
}
#notice.good { background: var(--card); color: var(--good); border: 1px solid currentColor; }
section { padding: .9rem 1rem; min-width: 0; }
.bar { display: flex; flex-wrap: wrap; align-items: center; gap: .6rem 1rem; margin-bottom: .6rem; }
.bar h2 { margin-right: auto; }
label { color: var(--quiet); font-size: .85rem; }
input, select, button {
  font: inherit; font-size: .9rem; color: var(--text); background: var(--ground); border: 1px solid var(--line);
  border-radius: .4rem; padding: .3rem .6rem;
}
input { width: 17rem; max-width: 60vw; }
button { cursor: pointer; }
button:hover { border-color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 1px; }
button.danger, button.free { color: var(--bad); }
button.danger { border-color: var(--bad); background: var(--bad-ground); }
button.free { white-space: nowrap; padding: .15rem .6rem; }
button.key { background: none; border: 0; padding: 0; text-align: left; color: var(--accent); }
button.key::before { content: '▸'; content: '▸' / ''; display: inline-block; width: 1.1em; color: var(--quiet); }
button.key[aria-expanded='true']::before { content: '▾'; content: '▾' / ''; }
table { width: 100%; border-collapse: collapse; }
th {
  text-align: left; color: var(--quiet); font-weight: 400; font-size: .8rem; padding: .2rem .6rem .2rem 0;
  border-bottom: 1px solid var(--line);
}
td {
  padding: .3rem .6rem .3rem 0; border-bottom: 1px solid var(--line); vertical-align: top; font-variant-numeric:
  tabular-nums; overflow-wrap: anywhere;
}
tbody tr:last-child td { border-bottom: 0; }
#keys { table-layout: fixed; }
#keys thead th { position: sticky; top: 0; background: var(--card); z-index: 1; }
#keys th:nth-child(2) { width: 19%; }
#keys th:nth-child(3), #keys th:nth-child(4) { width: 6.5rem; }
#keys th:nth-child(5) { width: 11.5rem; }
#keys th:nth-child(6) { width: 5rem; }
#keys th:nth-child(7) { width: 5.5rem; }
#keys td:nth-child(7) { text-align: right; }
#keys td.contended { color: var(--warn); font-weight: 600; }
td.details { background: var(--ground); padding: .6rem 1rem; }
td.details p { margin: 0 0 .4rem; }
td.details ol { columns: 2 26rem; }
td.quiet { font-size: 1em; }
td.bad { color: var(--bad); }
#templates td:not(:first-child), #templates th:not(:first-child) { text-align: right; }
.columns { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; margin: .75rem 0; }
.columns section:last-child { grid-column: 1 / -1; }
.scroll, #troubles, #history { max-height: 20rem; overflow: auto; }
.scroll { padding: 0 3px; margin: 0 -3px; }
.scroll.keys { max-height: 34rem; }
#troubles li, #history li { padding: .25rem 0; font-size: .88rem; overflow-wrap: anywhere; }
#troubles li + li, #history li + li { border-top: 1px solid var(--line); }
#troubles time, #history time, td.details time {
  color: var(--quiet); font-variant-numeric: tabular-nums; margin-right: .5rem;
}
#troubles b { color: var(--bad); }
#troubles li[data-type='evicted'] b, #troubles li[data-type='jeopardy'] b { color: var(--warn); }
dialog { color: var(--text); max-width: 32rem; padding: 1.2rem 1.4rem; }
dialog::backdrop { background: rgb(0 0 0 / .5); }
dialog .bar { justify-content: flex-end; margin: 1rem 0 0; }
.hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
[hidden] { display: none !important; }
@media (max-width: 52rem) {
  .columns { grid-template-columns: 1fr; }
  .figures { grid-template-columns: repeat(2, 1fr); }
  #keys thead { display: none; }
  #keys tr { display: block; padding: .4rem 0; border-bottom: 1px solid var(--line); }
  #keys td { display: inline-block; border: 0; }
  #keys td:first-child, #keys td.details { display: block; }
  #keys td[data-label]::before {
  content: attr(data-label) ' '; color: var(--quiet); font: .8rem system-ui, sans-serif;
}
  .scroll.keys { max-height: none; }
}
`;
