// Pointing at matches and pixels, and what is said of them.

const at = ([x, y]) => `(${number(x, 1)}, ${number(y, 1)})`;

function describeFocus() {
  const line = element("readout");
  line.replaceChildren();
  const round = rounds[state.round];
  const { focus } = state;
  if (!focus) {
    let lines = round.F ? " and its epipolar lines" : "";
    if (round.H) lines = " and where the homography puts it";
    line.textContent = `Point at a match or a pixel to see it${lines}; click or tap to keep it.`;
    return;
  }
  const parts = [];
  if (focus.match === undefined) {
    parts.push(`Pixel ${at(focus.pixel)} of image ${focus.image + 1}`);
    if (!lenses[focus.image].undistort(focus.pixel)) parts.push("beyond what the lens can see");
    else if (round.F) parts.push(`its partner in image ${2 - focus.image} lies on the line`);
    else if (round.H) parts.push(describePartner(round.H, focus));
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
    const [end, given] = [pointOf(1, focus.match), givenOf(focus.match)];
    parts.push(`${at(pointOf(0, focus.match))} → ${at(end)}`);
    if (given) parts.push(`refined by ${number(Math.hypot(end[0] - given[0], end[1] - given[1]))} px`);
  }
  const missing = report.kind === "homography" ? "no homography yet" : "no epipolar lines without a model";
  if (!round.F && !round.H) parts.push(missing);
  line.append(parts.join(" · "));
}

function describePartner(H, { image, pixel }) {
  const partner = transfer(H, image, pixel);
  return partner ? `its partner in image ${2 - image} is at ${at(partner)}` : "the homography has no partner of it";
}

function setFocus(focus, pinned = false) {
  state.focus = focus;
  state.pinned = pinned && focus !== null;
  describeFocus();
  redraw("focus");
}

function focusAt(event) {
  const place = placeOf(event);
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
  revealMatch(order[next]);
}

function listenToStage() {
  const { box } = stage;
  box.addEventListener("pointermove", (event) => {
    if (gesture.dragged && gesture.pointers.size) return;
    if (!state.pinned || event.pointerType === "touch") setFocus(focusAt(event));
  });
  box.addEventListener("pointerleave", (event) => {
    if (!state.pinned && event.pointerType === "mouse") setFocus(null);
  });
  box.addEventListener("click", (event) => {
    if (gesture.dragged) return;
    const focus = focusAt(event);
    const again = state.pinned && focus?.match !== undefined && focus.match === state.focus?.match;
    setFocus(again ? null : focus, true);
  });
  box.addEventListener("keydown", (event) => {
    const change = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!change || event.shiftKey) return;
    event.preventDefault();
    walk(change);
  });
}
