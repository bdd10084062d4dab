// Zooming and moving the images: by wheel, mouse, fingers, keys and buttons.

const ZOOM_STEP = 1.5; // of a key or a button
const MOVE_STEP = 0.15; // of a key, in shares of the frame
const DRAG_FROM = 4; // CSS pixels that a pointer moves before it drags

const gesture = { pointers: new Map(), frame: null, dragged: false }; // the pointers that are down, and what they move

const placeOf = (event) => {
  const box = stage.box.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
};

const byTouch = window.matchMedia("(pointer: coarse)");

function describeView() {
  const magnified = stage.frames.some((frame) => frame.magnified);
  stage.box.classList.toggle("magnified", magnified);
  const factors = stage.frames.map(({ zoom }) => `×${number(zoom, 1)}`).join(" and ");
  const [zooms, moves] = byTouch.matches
    ? ["Zoom with two fingers", `${factors} · drag to move`]
    : ["Zoom: Ctrl + wheel, + and −", `${factors} · drag or Shift + arrows to move · 0 for the whole images`];
  element("zoom-text").textContent = magnified ? moves : zooms;
}

function showView() {
  describeView();
  redraw("view");
}

function showWhole() {
  stage.frames.forEach((frame) => frame.reset());
  showView();
}

// Both images about the match in focus; the image of a pixel in focus about that; or both about their middles.
function zoomBy(factor) {
  const { focus } = state;
  stage.frames.forEach((frame, image) => {
    if (focus?.pixel && focus.image !== image) return;
    const pixel = focus && (focus.pixel ?? pointOf(image, focus.match));
    if (pixel) frame.reveal(pixel);
    frame.magnify(factor, pixel ? frame.toScreen(pixel) : frame.middle);
  });
  showView();
}

function moveBy(right, down) {
  stage.frames.forEach((frame) => frame.move(-right * frame.width, -down * frame.height));
  showView();
}

// A match that the keys lead to is in sight.
function revealMatch(match) {
  stage.frames.forEach((frame, image) => frame.reveal(pointOf(image, match)));
  showView();
}

function listenToWheel() {
  stage.box.addEventListener("wheel", (event) => {
    const frame = stage.frames.find((each) => each.contains(placeOf(event)));
    const wanted = event.ctrlKey || event.metaKey || document.activeElement === stage.box; // or the page scrolls
    const possible = event.deltaY < 0 || frame?.magnified || event.ctrlKey; // nor does the browser zoom the page
    if (!frame || !wanted || !possible) return;
    event.preventDefault();
    // A pinch on a touchpad comes as small steps with Ctrl; the wheel's are of a hundred.
    const steps = clamp(event.deltaMode === 1 ? 33 * event.deltaY : event.deltaY, -200, 200);
    frame.magnify(Math.exp((Math.abs(steps) < 50 && event.ctrlKey ? -0.01 : -0.002) * steps), placeOf(event));
    showView();
  }, { passive: false });
}

// The middle of the pointers that are down, and how far apart they are.
function grip() {
  const places = [...gesture.pointers.values()];
  const middle = [0, 1].map((axis) => places.reduce((sum, place) => sum + place[axis], 0) / places.length);
  return { middle, spread: places.length > 1 ? Math.hypot(...[0, 1].map((i) => places[0][i] - places[1][i])) : 1 };
}

function drag(event) {
  const { pointers, frame } = gesture;
  if (!pointers.has(event.pointerId) || !frame) return;
  const [before, place] = [grip(), placeOf(event)];
  const [x, y] = pointers.get(event.pointerId);
  const resting = !gesture.dragged && Math.hypot(place[0] - x, place[1] - y) < DRAG_FROM;
  if (pointers.size > 2 || (pointers.size === 1 && (resting || !frame.magnified))) return;
  if (!gesture.dragged && event.pointerType === "mouse") stage.box.setPointerCapture(event.pointerId);
  gesture.dragged = true;
  pointers.set(event.pointerId, place);
  const after = grip();
  frame.magnify(after.spread / Math.max(1, before.spread), before.middle);
  frame.move(after.middle[0] - before.middle[0], after.middle[1] - before.middle[1]);
  showView();
}

function listenToFingers() {
  const { box } = stage;
  box.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (gesture.pointers.size === 0) gesture.dragged = false;
    gesture.pointers.set(event.pointerId, placeOf(event));
    gesture.frame = stage.frames.find((frame) => frame.contains(grip().middle)) ?? null;
  });
  box.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
    box.addEventListener(end, (event) => gesture.pointers.delete(event.pointerId));
  }
  // Two fingers are ours even where one scrolls the page.
  box.addEventListener("touchmove", (event) => event.touches.length > 1 && event.preventDefault(), { passive: false });
}

function listenToZoom() {
  listenToWheel();
  listenToFingers();
  const [nearer, farther] = [() => zoomBy(ZOOM_STEP), () => zoomBy(1 / ZOOM_STEP)];
  const keys = { "+": nearer, "=": nearer, "-": farther, 0: showWhole };
  const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  stage.box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own zoom
    const move = event.shiftKey && moves[event.key];
    if (!move && !keys[event.key]) return;
    event.preventDefault();
    if (move) moveBy(MOVE_STEP * move[0], MOVE_STEP * move[1]);
    else keys[event.key]();
  });
  element("magnify").addEventListener("click", nearer);
  element("shrink").addEventListener("click", farther);
  element("whole").addEventListener("click", showWhole);
  describeView();
}
