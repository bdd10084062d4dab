// What the report says in words and numbers.

const REASONS = {
  budget: "all rounds ran",
  early_stop: "early",
  time: "out of time",
  too_few_points: "There are fewer matches than a minimal sample needs.",
  degenerate: "No sample of the matches determines a model: points are repeated or lie on a line.",
  no_consensus: "The best model explains nothing beyond its own sample. The images may not show the same scene.",
};
const WHAT = { pose: "relative pose", fundamental: "fundamental matrix", homography: "homography" }[report.kind];
const RIGHT = {
  pose: "the pose is right to 5°",
  fundamental: "the pose it implies is right to 5°",
  homography: "the homography is right to 1 % of the matches' extent",
}[report.kind];

function fact(name, value, className = "") {
  const [term, text] = [document.createElement("dt"), document.createElement("dd")];
  term.textContent = name;
  text.textContent = value;
  text.className = className;
  element("facts").append(term, text);
}

function matrix(values, write) {
  const texts = values.map((value) => write(value).replaceAll("-", "\u2212"));
  const width = Math.max(...texts.map((text) => text.length));
  const aligned = texts.map((text) => text.padStart(width));
  const rows = [];
  for (let i = 0; i < aligned.length; i += 3) rows.push(aligned.slice(i, i + 3).join("  "));
  return rows.join("\n");
}

const DEGENERACIES = {
  planar: "a plane explains the matches",
  rotation: "the camera only turned: the translation means nothing",
};

function summarise() {
  const { summary, estimate } = report;
  const facts = [`${WHAT[0].toUpperCase()}${WHAT.slice(1)} from ${whole(numMatches)} matches`];
  if (summary.success) facts.push(`${whole(summary.numInliers)} inliers`);
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
      ? `confident that ${RIGHT}`
      : "no confidence in any model";
  }
  element("dial-value").style.strokeDasharray = `${100 * share} 100`;
  element("dial-value").style.display = share > 0 ? "" : "none";
  element("dial").classList.toggle("unlikely", share < 0.5 && summary.confidence !== null);
  const ratio = numMatches ? ` (${percent(summary.numInliers / numMatches)})` : "";
  fact("Inliers", `${whole(summary.numInliers)} of ${whole(numMatches)}${ratio}`);
  if (summary.geometry) fact("Geometry", summary.geometry);
  else if (summary.degeneracy) fact("Geometry", DEGENERACIES[summary.degeneracy]);
  if (summary.numRefined !== null) fact("Refined", summary.numRefined ? `${whole(summary.numRefined)} matches` : "none");
  if (summary.noisePx !== null) {
    const before = summary.noiseBeforePx === null ? "" : `, ${number(summary.noiseBeforePx)} px with the given points`;
    fact("Noise", `${number(summary.noisePx)} px${before}`);
  }
  fact("Threshold", `${number(report.maxErrorPx, 2)} px`);
  if (summary.parallaxPx !== null) fact("Parallax", `${number(summary.parallaxPx, 1)} px`);
  if (summary.rotationConfidence !== null) fact("Rotation only", `${percent(summary.rotationConfidence)} confident`);
  if (summary.rotationDeviationDeg !== null) {
    const deviations = [summary.rotationDeviationDeg, summary.directionDeviationDeg].map((value) => `${number(value)}°`);
    fact("Deviation", `rotation ${deviations[0]}, direction ${deviations[1]}`);
  }
  summary.rivals.forEach(({ share, pose }) => {
    fact("Rival", `another motion explains ${percent(share)} of the matches instead`);
    if (pose) fact("Rival's t", matrix(pose.t, (value) => value.toFixed(5)), "matrix");
  });
  fact("Hypotheses", whole(summary.numHypotheses));
  fact("Time", `${number(summary.elapsedMs, summary.elapsedMs < 100 ? 1 : 0)} ms`);
  if (summary.success) fact("Stopped", REASONS[summary.stopReason]);
  if (summary.R) {
    fact("Rotation", `${number(summary.angleDeg)}°`);
    fact("R", matrix(summary.R, (value) => value.toFixed(5)), "matrix");
  }
  if (estimate) fact("t", matrix(estimate.t, (value) => value.toFixed(5)), "matrix");
  summary.alternatives.forEach(({ R, t }, i) => {
    const which = estimate ? "Or" : `Pose ${i + 1}:`;
    fact(`${which} R`, matrix(R, (value) => value.toFixed(5)), "matrix");
    fact(`${which} t`, matrix(t, (value) => value.toFixed(5)), "matrix");
  });
  report.images.forEach(({ camera }, i) => {
    if (summary.success && camera) fact(`Focal length ${i + 1}`, camera.focal);
  });
  if (!estimate && summary.success && report.kind === "fundamental") fact("Cameras", "unknown, so no 3-D view");
  for (const [name, values] of [["F", report.kind === "fundamental" && summary.F], ["H", summary.H]]) {
    if (values) fact(name, matrix(values, (value) => value.toExponential(2)), "matrix");
  }
}

function describeDistances(round, beyond) {
  if (!round.distances) return `Distances need a model${lastRound > 0 ? "; there is none before round 1" : ""}.`;
  const limit = +(DISTANCE_RANGE * report.maxErrorPx).toPrecision(3);
  const measure = report.kind === "homography" ? "Transfer error" : "Sampson distance";
  const counts = `${whole(round.numInliers)} within the threshold, ${whole(beyond)} beyond ${limit} px`;
  const sentences = [`${measure} in pixels: ${counts}.`];
  if (round.noisePx) sentences.push(`Typical noise ${number(round.noisePx)} px.`);
  if (report.hasProbabilities) sentences.push("Green is the share expected to be right.");
  return sentences.join(" ");
}

function describeHypotheses({ hypotheses }, exaggeration) {
  const models = hypotheses.length === 1 ? "the one distinct model" : `the ${hypotheses.length} best models`;
  if (hypotheses.length === 0) return report.estimate ? "Cameras 1 and 2 of the result." : "Camera 1; there are no models.";
  if (!report.estimate) return `Camera 1 and ${models} of the round.`;
  const apart = hypotheses.map(({ apartDeg }) => `${number(apartDeg, apartDeg < 10 ? 1 : 0)}°`).join(", ");
  const drawn = exaggeration > 1 ? `, drawn ${exaggeration} times as far` : "";
  return `Cameras 1 and 2, and ${models} of the round: ${apart} from the result${drawn}.`;
}
