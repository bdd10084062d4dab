// The result as text for other programs, to the last digit.

const rowsOfThree = (values) => (values.length === 3 ? values : rowsOf(values));

// What was found, by its name: R and t, F or H, and R of a camera that only turned.
function foundModels() {
  const { summary, estimate } = report;
  const models = { F: report.kind === "fundamental" && summary.F, H: summary.H, R: summary.R, t: estimate?.t };
  return Object.entries(models).filter(([, values]) => values).map(([name, values]) => [name, rowsOfThree(values)]);
}

function asPython() {
  const write = (values) => `[${values.map((value) => (Array.isArray(value) ? write(value) : value)).join(", ")}]`;
  const lines = foundModels().map(([name, values]) => `${name} = np.array(${write(values)})`);
  return ["import numpy as np", "", ...lines, ""].join("\n");
}

const asJson = () => JSON.stringify(Object.fromEntries(foundModels()));

// As COLMAP's images.txt has it: QW QX QY QZ TX TY TZ.
const asColmap = () => [...report.estimate.qvec, ...report.estimate.t].join(" ");

// Pages in frames, as in notebooks, may not use the clipboard but may copy what is selected.
async function copy(text, name) {
  const [box, button] = [element("copy-text"), document.activeElement];
  box.value = text;
  box.hidden = false;
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    box.select();
    copied = document.execCommand("copy");
  }
  box.hidden = copied;
  element("copied").textContent = copied ? `Copied as ${name}` : "Copy the text below";
  if (copied) button.focus(); // selecting the text has taken it
  else box.select();
}

function listenToCopies() {
  element("copies").hidden = foundModels().length === 0;
  element("copy-colmap").hidden = !report.estimate;
  const texts = { python: [asPython, "Python"], json: [asJson, "JSON"], colmap: [asColmap, "qvec (w x y z) and tvec"] };
  for (const [id, [write, name]] of Object.entries(texts)) {
    element(`copy-${id}`).addEventListener("click", () => copy(write(), name));
  }
}
