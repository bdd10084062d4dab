// The report's content, decoded, and the few helpers that everything else uses.

const report = JSON.parse(document.getElementById("content").textContent);
const STEPS_PER_THRESHOLD = 256; // of the 16-bit distances

function unpack(text, Type) {
  return new Type(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);
}

const points = report.images.map((image) => unpack(image.points, Float32Array)); // x, y, x, y, ...
const numMatches = points[0].length / 2;
const given2 = report.given2 && unpack(report.given2, Float32Array); // of image 2, before the matches were refined
const scores = report.scores === null ? null : unpack(report.scores, Float32Array);
const rounds = report.rounds.map((round) => ({
  ...round,
  probabilities: unpack(round.probabilities, Uint8Array), // 255 is certain
  distances: round.distances === null ? null : unpack(round.distances, Uint16Array),
}));
const lastRound = rounds.length - 1;
const cloud = report.cloud && {
  index: unpack(report.cloud.index, Uint32Array),
  points: unpack(report.cloud.points, Float32Array),
};

const pointOf = (image, match) => [points[image][2 * match], points[image][2 * match + 1]];
// The given point of image 2 of a match that was refined, otherwise null.
function givenOf(match) {
  const given = given2 && [given2[2 * match], given2[2 * match + 1]];
  return given && pointOf(1, match).some((value, axis) => value !== given[axis]) ? given : null;
}
const distancePx = (round, match) => (round.distances[match] / STEPS_PER_THRESHOLD) * report.maxErrorPx;

function roundName(number) {
  if (lastRound === 0) return "Result";
  return number === 0 ? "Before any model" : `Round ${number} of ${lastRound}`;
}

const element = (id) => document.getElementById(id);
const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const number = (value, digits = 2) => value.toFixed(digits).replace("-", "\u2212");
const whole = (count) => count.toLocaleString("en");

// Neither "0 %" of something nor "100 %" of less than all.
function percent(value) {
  if (value > 0 && value < 0.005) return "< 1 %";
  return value > 0.995 && value < 1 ? "> 99 %" : `${Math.round(100 * value)} %`;
}

// Red over amber to green for 0 to 255, the colours of probabilities everywhere.
const RAMP = (() => {
  const stops = [[214, 48, 62], [236, 126, 40], [232, 186, 40], [122, 182, 62], [22, 163, 96]];
  return Array.from({ length: 256 }, (_, value) => {
    const place = (value / 255) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    const mixed = stops[low].map((channel, i) => Math.round(channel + (stops[low + 1][i] - channel) * (place - low)));
    return `rgb(${mixed.join(" ")})`;
  });
})();

// The theme's colours, by their names in viewer.css.
const themeColours = new Map(); // emptied when the theme changes

function themeColour(name) {
  if (!themeColours.has(name)) {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.color = `var(--${name})`;
    themeColours.set(name, getComputedStyle(probe).color);
    probe.remove();
  }
  return themeColours.get(name);
}

// A canvas made as large as its box, in device pixels; returns its context, in CSS pixels, cleared.
function prepare(canvas, width = canvas.clientWidth, height = canvas.clientHeight) {
  const ratio = Math.min(window.devicePixelRatio || 1, 2);
  const [columns, rows] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}
