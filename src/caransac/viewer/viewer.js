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
  else if (parts.has("view")) stage.drawView();
  else if (parts.has("matches")) stage.drawMatches();
  if (parts.has("matches")) drawHistograms(element("histograms"), state.round);
  if (parts.has("matches") || parts.has("space")) space.draw(round, stage.probabilities);
  if (parts.has("matches")) describeRound(drawDistances(element("distances"), round, stage.probabilities));
  if (["matches", "view", "focus"].some((part) => parts.has(part))) stage.drawFocus(state.focus, round, state.pinned);
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
  const [from, to, start] = [stage.probabilities.slice(), rounds[target].probabilities, performance.now()];
  cancelAnimationFrame(state.fade);
  const step = (now) => {
    const share = calm.matches ? 1 : clamp((now - start) / FADE_MS, 0, 1);
    const eased = share * share * (3 - 2 * share);
    from.forEach((value, match) => (stage.probabilities[match] = value + (to[match] - value) * eased));
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
  element("distances").setAttribute("aria-label", `Histogram of the distances. ${distances}`);
  element("space-text").textContent = describeHypotheses(round, space.exaggeration);
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
  element("histograms").addEventListener("click", (event) => {
    play(false);
    showRound(Math.floor((event.offsetX / event.target.clientWidth) * rounds.length));
  });
  element("threshold").addEventListener("input", (event) => {
    stage.threshold = Number(event.target.value);
    redraw("matches");
  });
  const lines = element("lines");
  const join = (limit) => {
    lines.value = limit;
    stage.maxLines = limit === "all" ? Infinity : Number(limit);
    redraw("matches");
  };
  let before = lines.value; // what the key goes back to
  lines.addEventListener("change", () => join(lines.value));
  const toggleLines = () => {
    const next = lines.value === "0" ? before : "0";
    before = lines.value === "0" ? before : lines.value;
    join(next);
  };
  element("play").addEventListener("click", () => play(!state.playing));
  element("theme").addEventListener("click", toggleTheme);
  const keys = {
    "[": () => stepRound(-1),
    "]": () => stepRound(1),
    p: () => lastRound > 0 && play(!state.playing),
    l: toggleLines,
    t: toggleTheme,
    "?": toggleHelp,
    Escape: () => setFocus(null),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    (keys[event.key] ?? keys[event.key.toLowerCase()])?.();
  });
}

// The page gets higher with its text, which needs no new picture: its width counts, and the size of the charts.
function redrawWhenResized([body, ...charts]) {
  let drawn = "";
  const observer = new ResizeObserver(() => {
    const sizes = [body.clientWidth, ...charts.map((chart) => chart.clientHeight)].join();
    if (sizes !== drawn) redrawEverything();
    drawn = sizes;
  });
  [body, ...charts].forEach((part) => observer.observe(part));
}

function start() {
  element("made").textContent = `caransac ${report.version}`;
  element("round").max = lastRound;
  element("round").value = lastRound;
  element("rounds").hidden = lastRound === 0;
  element("rounds").style.setProperty("--rounds", rounds.length);
  element("space-card").hidden = !space.corners[0] || !space.corners[1];
  summarise();
  describeFocus();
  listenToZoom();
  listenToStage();
  listenToSpace();
  listenToControls();
  listenToCopies();
  prefersDark.addEventListener("change", redrawEverything);
  redrawWhenResized([document.body, element("space"), element("distances")]);
}

start();
window.caransac = Object.freeze({ report, rounds, stage, space, state, exaggerate, transfer }); // for the console
