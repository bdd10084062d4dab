// The page of a localised image: zooming and moving, reading and hiding matches.

const element = (id) => document.getElementById(id);
const [stage, readout] = [element("stage"), element("readout")];
const picture = stage.querySelector("svg");
const whole = picture.getAttribute("viewBox").split(" ").map(Number);
let [left, top, width, height] = whole;

function show() {
  stage.classList.toggle("magnified", width < whole[2]);
  [left, top] = [left, top].map((start, axis) => {
    const most = whole[axis + 2] - [width, height][axis];
    return Math.min(Math.max(start, 0), most);
  });
  picture.setAttribute("viewBox", [left, top, width, height].join(" "));
}

// Magnify about a place of the picture, given in shares of its box.
function zoom(factor, x = 0.5, y = 0.5) {
  const size = Math.min(Math.max(width / factor, whole[2] / 50), whole[2]);
  const grown = size / width;
  left += x * width * (1 - grown);
  top += y * height * (1 - grown);
  [width, height] = [size, height * grown];
  show();
}

stage.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  const box = picture.getBoundingClientRect();
  const place = [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
  zoom(Math.exp(-0.003 * event.deltaY), ...place);
}, { passive: false });
stage.addEventListener("pointermove", (event) => {
  if (!(event.buttons & 1)) return;
  const scale = width / picture.getBoundingClientRect().width;
  left -= event.movementX * scale;
  top -= event.movementY * scale;
  show();
});
stage.addEventListener("pointerover", (event) => {
  const match = event.target.closest("g");
  if (match) readout.textContent = match.querySelector("title").textContent;
});
const keys = { "+": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0) };
stage.addEventListener("keydown", (event) => keys[event.key]?.());
for (const [id, key] of [["magnify", "+"], ["shrink", "-"], ["whole", "0"]]) element(id).addEventListener("click", keys[key]);

element("least").addEventListener("input", ({ target }) => {
  element("shown").value = target.value;
  for (const mark of picture.querySelectorAll("g")) {
    mark.style.display = Number(mark.dataset.probability) < Number(target.value) ? "none" : "";
  }
});
element("theme").addEventListener("click", () => {
  const { dataset } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  dataset.theme = dark ? "light" : "dark";
});
const confidence = Number(element("dial").dataset.confidence);
element("dial").classList.toggle("unlikely", confidence < 0.5);
element("dial-value").style.strokeDasharray = `${100 * confidence} 100`;
