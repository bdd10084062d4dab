// Turning and zooming the 3-D view.

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
