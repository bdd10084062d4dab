// What the report says in words and numbers.

const REASONS = {
  budget: "all rounds ran",
  early_stop: "early, surely done",
  too_few_points: "There are fewer matches than a minimal sample needs.",
  degenerate: "No sample of the matches determines a model: points are repeated or lie on a line.",
  no_consensus: "The best model explains nothing beyond its own sample. The images may not show the same scene.",
};
const WHAT = report.kind === "pose" ? "relative pose" : "fundamental matrix";

function fact(name, value, className = "") {
  const [term, text] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = name;
  text.textContent = value;
  text.className = className;
  element("facts").append(term, text);
}

function matrix(values, columns, digits) {
  const texts = values.map((value) => (digits === null ? value.toExponential(2) : number(value, digits)).replaceAll("-", "\u2212"));
  const width = Math.max(...texts.map((text) => text.length));
  const rows = [];
  for (let i = 0; i < texts.length; i += columns) rows.push(texts.slice(i, i + columns).map((text) => text.padStart(width)).join("  "));
  return rows.join("\n");
}

function summarise() {
  const { summary, estimate } = report;
  const facts = [`${WHAT[0].toUpperCase()}${WHAT.slice(1)} from ${plural(numMatches, "match")}`];
  if (summary.success) facts.push(plural(summary.numInliers, "inlier"));
  if (summary.success && summary.confidence !== null) facts.push(`${percent(summary.confidence)} confident`);
  element("subtitle").textContent = facts.join(" · ");
  if (!summary.success) {
    element("failure").hidden = false;
    element("failure").textContent = `No ${WHAT} was found. ${REASONS[summary.stopReason]}`;
  }
  const share = summary.confidence ?? (numMatches ? summary.numInliers / numMatches : 0);
  element("hero").textContent = summary.success ? percent(share) : "No result";
  if (summary.confidence === null) {
    element("hero-text").textContent = "of the matches agree";
  } else {
    element("hero-text").textContent = summary.success
      ? `confident that the pose${report.kind === "pose" ? "" : " it implies"} is right to 5°`
      : "no confidence in any model";
  }
  element("dial-value").style.strokeDasharray = `${100 * share} 100`;
  element("dial-value").style.display = share > 0 ? "" : "none";
  element("dial").classList.toggle("unlikely", share < 0.5 && summary.confidence !== null);
  const ratio = numMatches ? ` (${percent(summary.numInliers / numMatches)})` : "";
  fact("Inliers", `${summary.numInliers.toLocaleString("en")} of ${numMatches.toLocaleString("en")}${ratio}`);
  fact("Hypotheses", summary.numHypotheses.toLocaleString("en"));
  fact("Time", `${number(summary.elapsedMs, summary.elapsedMs < 100 ? 1 : 0)} ms`);
  if (summary.success) fact("Stopped", REASONS[summary.stopReason]);
  if (estimate) {
    fact("Rotation", `${number(summary.angleDeg)}°`);
    fact("R", matrix(estimate.R, 3, 5), "matrix");
    fact("t", matrix(estimate.t, 3, 5), "matrix");
  }
  if (!estimate && summary.success) fact("Cameras", "unknown, so no 3-D view");
  if (report.kind === "fundamental" && summary.F) fact("F", matrix(summary.F, 3, null), "matrix");
}

function describeDistances(round, beyond) {
  if (!round.distances) return lastRound > 0 ? "Distances need a model; there is none before the first round." : "Distances need a model.";
  const noise = round.noisePx ? ` Typical noise ${number(round.noisePx)} px.` : "";
  const limit = +(DISTANCE_RANGE * report.maxErrorPx).toPrecision(3);
  return `Sampson distance in pixels: ${round.numInliers.toLocaleString("en")} within the threshold, ${beyond.toLocaleString("en")} beyond ${limit} px.${noise}${report.hasProbabilities ? " Green is the share expected to be right." : ""}`;
}

function describeHypotheses(round, exaggeration) {
  if (!report.sides[0].corners || !report.sides[1].corners) return "";
  const spread = round.hypotheses.filter((h) => h.apartDeg !== null).map((h) => `${number(h.apartDeg, h.apartDeg < 10 ? 1 : 0)}°`);
  const drawn = exaggeration > 1 ? `, drawn ${exaggeration} times as far` : "";
  const models = round.hypotheses.length === 1 ? "the one distinct model" : `the ${round.hypotheses.length} best models`;
  if (spread.length) return `Cameras 1 and 2, and ${models} of the round: ${spread.join(", ")} from the result${drawn}.`;
  if (round.hypotheses.length) return `Camera 1 and ${models} of the round.`;
  return report.estimate ? "Cameras 1 and 2 of the result." : "Camera 1; there are no models.";
}
