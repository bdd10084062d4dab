// The charts: how probabilities sharpen round by round, and the distances of the matches to the round's model.

const PROBABILITY_BINS = 24;
const DISTANCE_BINS = 40;
const DISTANCE_RANGE = 5; // thresholds shown

const fontOf = (canvas) => `11px ${getComputedStyle(canvas).fontFamily}`;

const probabilityBins = rounds.map((round) => {
  const bins = new Uint32Array(PROBABILITY_BINS);
  for (const value of round.probabilities) bins[Math.floor((value * PROBABILITY_BINS) / 256)]++;
  return bins;
});

// One small histogram of the probabilities for each round, the current one framed. Cube roots, so that the few right
// ones among many wrong ones are seen.
function drawHistograms(canvas, current) {
  const context = prepare(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight - 16];
  const largest = Math.cbrt(Math.max(1, ...probabilityBins.flatMap((bins) => [...bins])));
  const column = width / rounds.length;
  const chart = Math.min(column - 6, 220);
  Object.assign(context, { font: fontOf(canvas), textAlign: "center" });
  rounds.forEach((_, i) => {
    const left = column * (i + 0.5) - chart / 2;
    context.globalAlpha = i === current ? 1 : 0.45;
    context.fillStyle = themeColour("faint");
    context.fillRect(left, height - 1, chart, 1);
    context.fillStyle = themeColour(i === current ? "ink" : "quiet");
    context.fillText(i === 0 ? "before" : i, left + chart / 2, height + 13);
    const bar = chart / PROBABILITY_BINS;
    probabilityBins[i].forEach((amount, bin) => {
      const tall = (Math.cbrt(amount) / largest) * (height - 4);
      context.fillStyle = RAMP[Math.round(((bin + 0.5) / PROBABILITY_BINS) * 255)];
      context.fillRect(left + bin * bar, height - 1 - tall, Math.max(0.8, bar - 1), tall);
    });
  });
  context.globalAlpha = 1;
}

// Counts by distance, and how many of them are expected to be right.
function distanceBins(round, probabilities) {
  const bins = Array.from({ length: DISTANCE_BINS }, () => ({ count: 0, right: 0 }));
  let beyond = 0;
  round.distances.forEach((steps, match) => {
    const bin = Math.floor((steps / STEPS_PER_THRESHOLD / DISTANCE_RANGE) * DISTANCE_BINS);
    if (bin >= DISTANCE_BINS) return beyond++;
    bins[bin].count++;
    bins[bin].right += probabilities[match] / 255;
  });
  return { bins, beyond };
}

// Heights are square roots; each bar is split into the shares expected to be right and wrong.
function drawDistances(canvas, round, probabilities) {
  const context = prepare(canvas);
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const [left, right, top, bottom] = [34, 8, 16, 22];
  const [inner, tall] = [width - left - right, height - top - bottom];
  context.font = fontOf(canvas);
  context.fillStyle = themeColour("quiet");
  if (!round.distances) {
    context.textAlign = "center";
    context.fillText(numMatches ? "No model" : "No matches", width / 2, height / 2);
    return null;
  }
  const { bins, beyond } = distanceBins(round, probabilities);
  const largest = niceCeiling(Math.max(1, ...bins.map(({ count }) => count)));
  context.textBaseline = "middle";
  for (const tick of [0, Math.round(largest / 4), largest]) {
    const y = top + tall * (1 - Math.sqrt(tick / largest));
    context.textAlign = "right";
    context.fillStyle = themeColour("quiet");
    context.fillText(tick, left - 6, y);
    context.fillStyle = themeColour("faint");
    context.fillRect(left, Math.round(y), inner, 1);
  }
  const bar = inner / DISTANCE_BINS;
  bins.forEach(({ count, right: likely }, i) => {
    const bars = tall * Math.sqrt(count / largest);
    const green = count ? (bars * likely) / count : 0;
    context.fillStyle = RAMP[235];
    context.fillRect(left + i * bar, top + tall - green, Math.max(1, bar - 1), green);
    context.globalAlpha = 0.5;
    context.fillStyle = RAMP[20];
    context.fillRect(left + i * bar, top + tall - bars, Math.max(1, bar - 1), bars - green);
    context.globalAlpha = 1;
  });
  context.fillStyle = themeColour("quiet");
  context.textAlign = "center";
  for (let step = 0; step <= DISTANCE_RANGE; step++) {
    const text = `${+(step * report.maxErrorPx).toPrecision(3)}${step === DISTANCE_RANGE ? " px" : ""}`;
    const farthest = width - context.measureText(text).width / 2 - 1; // the last one is not cut off
    context.fillText(text, Math.min(left + (inner * step) / DISTANCE_RANGE, farthest), height - 9);
  }
  const threshold = left + inner / DISTANCE_RANGE;
  context.strokeStyle = themeColour("ink");
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(threshold, top - 4);
  context.lineTo(threshold, top + tall);
  context.stroke();
  context.setLineDash([]);
  context.textAlign = "left";
  context.fillStyle = themeColour("ink");
  context.fillText("threshold", threshold + 5, top - 1);
  return beyond;
}

function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.6, 2, 3, 4, 6, 8, 10].map((factor) => Math.ceil(factor * power)).find((nice) => nice >= value);
}
