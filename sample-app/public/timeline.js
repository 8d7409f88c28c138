const SPAN_MS = 10_000;
const BAR_TOP = 12;
const BAR_HEIGHT = 42;
const WAITERS_TOP = 66;
const WAITERS_HEIGHT = 42;
/** The last bits of a fencing token count hand-offs inside a process; the others are the lease. */
const HAND_OFF_BITS = 11n;
const COLOURS = ['#d6336c', '#1c7ed6', '#f08c00', '#2b8a3e', '#7048e8'];

/** Draws the last seconds of one key: one bar for each hold, and below how many waited. */
export class Timeline {
  #canvas;
  /** { from, to, lost, lease, colour }, in the server's time; `to` is missing while it is held. */
  #holds = [];
  /** { at, count } */
  #waiters = [];
  /** The server's clock minus ours. */
  #ahead = 0;

  constructor(canvas) {
    this.#canvas = canvas;
    const draw = () => {
      this.#draw();
      requestAnimationFrame(draw);
    };
    draw();
  }

  add({ kind, at, token, waiters }) {
    this.#ahead = at - Date.now();
    if (waiters !== undefined) this.#waiters.push({ at, count: waiters });
    const last = this.#holds.at(-1);
    if (kind === 'acquired') {
      const lease = BigInt(token) >> HAND_OFF_BITS;
      const colour = (last?.colour ?? 0) + (last?.lease === lease ? 0 : 1);
      this.#holds.push({ from: at, lease, colour });
    }
    if ((kind === 'released' || kind === 'lost') && last) Object.assign(last, { to: at, lost: kind === 'lost' });
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    const scale = devicePixelRatio;
    this.#canvas.width = width * scale;
    this.#canvas.height = height * scale;
    const pen = this.#canvas.getContext('2d');
    pen.scale(scale, scale);
    const now = Date.now() + this.#ahead;
    const start = now - SPAN_MS;
    const x = (at) => ((at - start) / SPAN_MS) * width;
    this.#holds = this.#holds.filter(({ to = now }) => to > start);
    while (this.#waiters[1] && this.#waiters[1].at < start) this.#waiters.shift();

    drawSeconds(pen, { now, start, x, height, colour: getComputedStyle(this.#canvas).color });
    for (const { from, to = now, lost, colour } of this.#holds) {
      pen.fillStyle = lost ? '#c92a2a' : COLOURS[colour % COLOURS.length];
      pen.beginPath();
      pen.roundRect(x(from), BAR_TOP, Math.max(2, x(to) - x(from) - 1), BAR_HEIGHT, 3);
      pen.fill();
    }
    this.#drawWaiters(pen, { now, x });
  }

  #drawWaiters(pen, { now, x }) {
    const most = Math.max(10, ...this.#waiters.map(({ count }) => count));
    pen.fillStyle = '#868e96';
    this.#waiters.forEach(({ at, count }, index) => {
      const until = this.#waiters[index + 1]?.at ?? now;
      const high = (count / most) * WAITERS_HEIGHT;
      pen.fillRect(x(at), WAITERS_TOP + WAITERS_HEIGHT - high, x(until) - x(at) + 0.5, high);
    });
  }
}

function drawSeconds(pen, { now, start, x, height, colour }) {
  pen.fillStyle = colour;
  pen.globalAlpha = 0.12;
  for (let second = Math.ceil(start / 1000) * 1000; second < now; second += 1000) pen.fillRect(x(second), 0, 1, height);
  pen.fillRect(0, WAITERS_TOP + WAITERS_HEIGHT, x(now), 1);
  pen.globalAlpha = 1;
}
