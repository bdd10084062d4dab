// The page: its state, what changes it, and what is drawn again when it changes.

const FADE_MS = 350; // from one round to the next
const PLAY_MS = 1300; // that a round stays when played

const stage = new Stage(element("stage"), {
  images: element("images"),
  matches: element("matches"),
  overlay: element("overlay"),
});
const space = new Space(element("space"));
const state = { round: lastRound, focus: null, pinned: false, fade: null, playing: null };
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

// ---- drawing

const stale = new Set();

function redraw(...parts) {
  if (stale.size === 0) requestAnimationFrame(drawStale);
  parts.forEach((part) => stale.add(part));
}

function drawStale() {
  const parts = new Set(stale);
  stale.clear();
  const round = rounds[state.round];
  if (parts.has("layout")) stage.drawAll();
  else if (parts.has("matches")) stage.drawMatches();
  if (parts.has("matches")) drawBelief(element("belief"), state.round);
  if (parts.has("matches") || parts.has("space")) space.draw(round, stage.belief);
  if (parts.has("matches")) describeRound(drawDistances(element("distances"), round, stage.belief));
  if (parts.has("matches") || parts.has("focus")) stage.drawFocus(state.focus, round.F, state.pinned);
}

const redrawEverything = () => {
  themeColours.clear();
  drawRamp();
  redraw("layout", "matches");
};

function drawRamp() {
  const canvas = element("ramp");
  const context = prepare(canvas);
  const gradient = context.createLinearGradient(0, 0, canvas.clientWidth, 0);
  RAMP.forEach((colour, value) => value % 15 === 0 && gradient.addColorStop(value / 255, colour));
  context.fillStyle = gradient;
  context.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
}

// ---- rounds and threshold

function showRound(wanted) {
  const target = clamp(wanted, 0, lastRound);
  if (target === state.round) return;
  state.round = target;
  element("round").value = target;
  const [from, to, start] = [stage.belief.slice(), rounds[target].probabilities, performance.now()];
  cancelAnimationFrame(state.fade);
  const step = (now) => {
    const share = calm.matches ? 1 : clamp((now - start) / FADE_MS, 0, 1);
    const eased = share * share * (3 - 2 * share);
    from.forEach((value, match) => (stage.belief[match] = value + (to[match] - value) * eased));
    redraw("matches");
    if (share < 1) state.fade = requestAnimationFrame(step);
    else describeFocus();
  };
  step(start);
}

function play(wanted) {
  clearInterval(state.playing);
  state.playing = null;
  if (wanted) {
    if (state.round === lastRound) showRound(0);
    state.playing = setInterval(() => {
      showRound(state.round + 1);
      if (state.round === lastRound) play(false);
    }, PLAY_MS);
  }
  element("play").setAttribute("aria-pressed", String(Boolean(wanted)));
  element("play-icon").setAttribute("d", wanted ? "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z" : "M6 4l10 6-10 6z");
}

function stepRound(change) {
  play(false);
  showRound(state.round + change);
}

function describeRound(beyond) {
  const round = rounds[state.round];
  const likely = round.probabilities.reduce((sum, value) => sum + (value >= 128), 0);
  const facts = [roundName(state.round)];
  if (report.hasProbabilities) facts.push(`${whole(likely)} likely right`);
  if (round.apartDeg > 0.005 && state.round < lastRound) facts.push(`model ${number(round.apartDeg)}° from the result`);
  element("round-text").textContent = facts.join(" · ");
  element("round").setAttribute("aria-valuetext", facts.join(", "));

  const least = stage.threshold;
  const shown = `${whole(stage.numShown)} of ${whole(numMatches)}`;
  element("threshold-text").textContent = `${number(least)} · shows ${shown}`;
  element("threshold").setAttribute("aria-valuetext", `probability ${number(least)}, showing ${shown}`);

  const distances = describeDistances(round, beyond);
  element("distance-text").textContent = distances;
  element("distances").setAttribute("aria-label", `Histogram of the Sampson distances. ${distances}`);
  element("space-text").textContent = describeHypotheses(round, space.exaggeration);
}

// ---- pointing

function describeFocus() {
  const line = element("readout");
  line.replaceChildren();
  const round = rounds[state.round];
  const { focus } = state;
  const at = ([x, y]) => `(${number(x, 1)}, ${number(y, 1)})`;
  if (!focus) {
    const lines = round.F ? " and its epipolar lines" : "";
    line.textContent = `Point at a match or a pixel to see it${lines}; click or tap to keep it.`;
    return;
  }
  const parts = [];
  if (focus.match === undefined) {
    parts.push(`Pixel ${at(focus.pixel)} of image ${focus.image + 1}`);
    if (!lenses[focus.image].undistort(focus.pixel)) parts.push("beyond what the lens can see");
    else if (round.F) parts.push(`its partner in image ${2 - focus.image} lies on the line`);
  } else {
    const value = round.probabilities[focus.match];
    const swatch = document.createElement("i");
    swatch.style.background = RAMP[value];
    const name = document.createElement("b");
    name.textContent = `Match ${focus.match + 1}`;
    line.append(swatch, name, " · ");
    if (report.hasProbabilities) parts.push(`probability ${number(value / 255)}`);
    else parts.push(value ? "inlier" : "outlier");
    if (round.distances) {
      const far = round.distances[focus.match] === 65535;
      parts.push(`${far ? "> " : ""}${number(distancePx(round, focus.match), far ? 0 : 2)} px from the model`);
    }
    if (scores) parts.push(`score ${number(scores[focus.match])}`);
    parts.push(`${at(pointOf(0, focus.match))} → ${at(pointOf(1, focus.match))}`);
  }
  if (!round.F) parts.push("no epipolar lines without a model");
  line.append(parts.join(" · "));
}

function setFocus(focus, pinned = false) {
  state.focus = focus;
  state.pinned = pinned && focus !== null;
  describeFocus();
  redraw("focus");
}

function focusAt(event) {
  const box = stage.box.getBoundingClientRect();
  const place = [event.clientX - box.left, event.clientY - box.top];
  const match = stage.matchAt(place, REACH[event.pointerType] ?? REACH.mouse);
  return match === null ? stage.toPixel(place) : { match };
}

// Matches by falling probability, for the arrow keys.
function walk(change) {
  const order = stage.order().reverse().filter((match) => stage.isShown(match));
  if (order.length === 0) return;
  const place = state.focus?.match === undefined ? -1 : order.indexOf(state.focus.match);
  const next = place < 0 ? 0 : (place + change + order.length) % order.length;
  setFocus({ match: order[next] }, true);
}

function listenToStage() {
  const { box } = stage;
  box.addEventListener("pointermove", (event) => {
    if (!state.pinned || event.pointerType === "touch") setFocus(focusAt(event));
  });
  box.addEventListener("pointerleave", (event) => {
    if (!state.pinned && event.pointerType === "mouse") setFocus(null);
  });
  box.addEventListener("click", (event) => {
    const focus = focusAt(event);
    const again = state.pinned && focus?.match !== undefined && focus.match === state.focus?.match;
    setFocus(again ? null : focus, true);
  });
  box.addEventListener("keydown", (event) => {
    const change = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!change) return;
    event.preventDefault();
    walk(change);
  });
}

function listenToSpace() {
  const { canvas } = space;
  const view = (change) => (event) => {
    change(event);
    redraw("space");
  };
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    canvas.setPointerCapture(event.pointerId);
  });
  const spread = () => {
    const [[ax, ay], [bx, by]] = [...pointers.values()];
    return Math.hypot(ax - bx, ay - by);
  };
  canvas.addEventListener("pointermove", view((event) => {
    const last = pointers.get(event.pointerId);
    if (!last) return;
    const before = pointers.size === 2 ? spread() : 0;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 2) space.zoom(before / Math.max(1, spread()));
    else space.turn(0.008 * (event.clientX - last[0]), 0.008 * (event.clientY - last[1]));
  }));
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
  }
  canvas.addEventListener("wheel", view((event) => {
    if (document.activeElement !== canvas) return; // the page scrolls past a view that nobody is using
    event.preventDefault();
    space.zoom(Math.exp(0.0015 * event.deltaY));
  }), { passive: false });
  const keys = {
    ArrowLeft: () => space.turn(-0.12, 0),
    ArrowRight: () => space.turn(0.12, 0),
    ArrowUp: () => space.turn(0, -0.12),
    ArrowDown: () => space.turn(0, 0.12),
    "+": () => space.zoom(0.85),
    "-": () => space.zoom(1 / 0.85),
    0: () => space.reset(),
  };
  canvas.addEventListener("keydown", view((event) => {
    if (!keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  }));
  const button = element("exaggerate");
  button.hidden = EXAGGERATION === 1;
  button.textContent = `×${EXAGGERATION}`;
  button.title = `Draw differences from the result ${EXAGGERATION} times as large`;
  button.setAttribute("aria-label", button.title);
  button.addEventListener("click", view(() => {
    space.exaggeration = space.exaggeration === 1 ? EXAGGERATION : 1;
    button.setAttribute("aria-pressed", String(space.exaggeration > 1));
    element("space-text").textContent = describeHypotheses(rounds[state.round], space.exaggeration);
  }));
  element("nearer").addEventListener("click", view(keys["+"]));
  element("farther").addEventListener("click", view(keys["-"]));
  element("home").addEventListener("click", view(keys[0]));
}

// ---- the rest of the page

function toggleTheme() {
  const { dataset } = document.documentElement;
  const current = dataset.theme ?? (prefersDark.matches ? "dark" : "light");
  dataset.theme = current === "dark" ? "light" : "dark";
  redrawEverything();
}

function toggleHelp() {
  const help = element("help");
  help.open = !help.open;
  if (help.open) help.scrollIntoView({ block: "nearest" });
}

function listenToControls() {
  element("round").addEventListener("input", (event) => {
    play(false);
    showRound(Number(event.target.value));
  });
  element("belief").addEventListener("click", (event) => {
    play(false);
    showRound(Math.floor((event.offsetX / event.target.clientWidth) * rounds.length));
  });
  element("threshold").addEventListener("input", (event) => {
    stage.threshold = Number(event.target.value);
    redraw("matches");
  });
  const lines = element("lines");
  lines.addEventListener("change", () => {
    stage.withLines = lines.checked;
    redraw("matches");
  });
  element("play").addEventListener("click", () => play(!state.playing));
  element("theme").addEventListener("click", toggleTheme);
  const keys = {
    "[": () => stepRound(-1),
    "]": () => stepRound(1),
    p: () => lastRound > 0 && play(!state.playing),
    l: () => lines.click(),
    t: toggleTheme,
    "?": toggleHelp,
    Escape: () => setFocus(null),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    (keys[event.key] ?? keys[event.key.toLowerCase()])?.();
  });
}

function start() {
  element("made").textContent = `caransac ${report.version}`;
  element("round").max = lastRound;
  element("round").value = lastRound;
  element("rounds").hidden = lastRound === 0;
  element("rounds").style.setProperty("--rounds", rounds.length);
  element("space-card").hidden = !report.images[0].corners || !report.images[1].corners;
  summarise();
  describeFocus();
  listenToStage();
  listenToSpace();
  listenToControls();
  prefersDark.addEventListener("change", redrawEverything);
  let width = 0;
  new ResizeObserver(() => {
    if (width === document.body.clientWidth) return; // a line more of text needs no new picture
    width = document.body.clientWidth;
    redrawEverything();
  }).observe(document.body);
}

start();
window.caransac = Object.freeze({ report, rounds, stage, space, state, exaggerate }); // for the console
