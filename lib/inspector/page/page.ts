import { script } from './script.js';
import { style } from './style.js';

export { script, style };

const html = /* HTML */ `<!doctype html>
  <html lang="en">
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <title>Locks</title>
      <link rel="icon" href="data:," />
      <style></style>
    </head>
    <body>
      <header>
        <h1>Locks</h1>
        <ul id="backends" aria-label="Backends"></ul>
        <p id="connection" role="status" data-state="connecting">connecting …</p>
      </header>
      <main>
        <dl class="figures">
          <div>
            <dt>held</dt>
            <dd id="held">–</dd>
          </div>
          <div>
            <dt>waiting</dt>
            <dd id="waiting">–</dd>
          </div>
          <div>
            <dt>lost, 5 min</dt>
            <dd id="lost">–</dd>
          </div>
          <div>
            <dt>timed out, 5 min</dt>
            <dd id="timed-out">–</dd>
          </div>
        </dl>
        <p id="notice" role="alert" hidden></p>
        <section aria-labelledby="keys-title">
          <div class="bar">
            <h2 id="keys-title">Keys</h2>
            <label
              >Find
              <input
                id="search"
                type="search"
                placeholder="part of a key  ( / )"
                autocomplete="off"
                spellcheck="false"
                maxlength="512"
            /></label>
            <label
              >Sort
              <select id="sort">
                <option value="waiting">most waiting</option>
                <option value="since">held longest</option>
                <option value="key">by name</option>
              </select></label
            >
          </div>
          <div class="scroll keys" tabindex="0" role="region" aria-labelledby="keys-title">
            <table id="keys">
              <thead>
                <tr>
                  <th scope="col">key</th>
                  <th scope="col">holder</th>
                  <th scope="col">held</th>
                  <th scope="col">left</th>
                  <th scope="col" class="token">token</th>
                  <th scope="col">waiting</th>
                  <th scope="col"><span class="hidden">free</span></th>
                </tr>
              </thead>
              <tbody></tbody>
            </table>
          </div>
          <p id="empty" class="quiet" hidden></p>
        </section>
        <div class="columns">
          <section aria-labelledby="troubles-title">
            <h2 id="troubles-title">Trouble <small>live</small></h2>
            <ol id="troubles" role="log" tabindex="0" aria-labelledby="troubles-title"></ol>
          </section>
          <section aria-labelledby="templates-title">
            <h2 id="templates-title">Contention <small>by template</small></h2>
            <div class="scroll" tabindex="0" role="region" aria-labelledby="templates-title">
              <table id="templates">
                <thead>
                  <tr>
                    <th scope="col">template</th>
                    <th scope="col">acquired</th>
                    <th scope="col">wait</th>
                    <th scope="col">longest</th>
                    <th scope="col">hold</th>
                    <th scope="col">timed out</th>
                    <th scope="col">lost</th>
                  </tr>
                </thead>
                <tbody></tbody>
              </table>
              <p id="no-template" class="quiet">No key was acquired here in the last five minutes.</p>
            </div>
          </section>
          <section aria-labelledby="history-title">
            <h2 id="history-title">History</h2>
            <ol id="history" tabindex="0" aria-labelledby="history-title"></ol>
          </section>
        </div>
        <p class="quiet">
          Keys are those of all processes. Trouble, contention and history are those of
          <b id="process">this process</b>, in the last five minutes.
        </p>
      </main>
      <dialog id="confirm" aria-labelledby="confirm-title">
        <form method="dialog">
          <h2 id="confirm-title">Free this key?</h2>
          <p><code id="confirm-key"></code></p>
          <p id="confirm-holder"></p>
          <p>
            The next one gets the key at once. The holder is told, by its next renewal at the latest; until then both
            may work. Only fencing tokens keep its late writes out.
          </p>
          <div class="bar">
            <button value="cancel" autofocus>Leave it</button
            ><button id="confirm-free" value="free" class="danger">Free the key</button>
          </div>
        </form>
      </dialog>
      <script></script>
    </body>
  </html> `;

/** One file, which needs nothing from elsewhere. */
export const page: string = html
  .replace('<style>', () => `<style>${style}`)
  .replace('<script>', () => `<script>${script}`);
