// The stage: both images, the matches between them, and the epipolar lines under the pointer.

const GAP = 10; // CSS pixels between the images
const SIDE_BY_SIDE = 620; // CSS pixels of a stage that has the images side by side, at least
const LOUPE = 5; // how much larger than the image around it
const PATCH = 8; // pixels around a refined match that a loupe shows: the patch that was aligned
const MAX_LINES = 200; // between matches at first: thousands are a wash of colour
const CELLS = 8; // rows and columns of image 1 over which lines are spread
const REACH = { mouse: 12, pen: 16, touch: 26 }; // CSS pixels around the pointer in which a match is found

class Stage {
  constructor(box, { images, matches, overlay }) {
    Object.assign(this, { box, layers: { images, matches, overlay }, pictures: [null, null] });
    this.frames = report.images.map(({ size }) => new Frame(size));
    this.probabilities = Float32Array.from(rounds[lastRound].probabilities);
    this.threshold = 0;
    this.only = null; // the matches of a rival, where they alone are shown
    this.maxLines = MAX_LINES;
    report.images.forEach((image, i) => {
      if (!image.picture) return;
      const picture = new Image();
      picture.onload = () => {
        this.pictures[i] = picture;
        if (this.width) this.drawImages();
      };
      picture.src = image.picture;
    });
  }

  // Puts the frames side by side, or one above the other where there is little room.
  layOut() {
    const width = this.box.clientWidth;
    const aspects = report.images.map(({ size }) => size[0] / size[1]);
    if (width >= SIDE_BY_SIDE) {
      const height = Math.min((width - GAP) / (aspects[0] + aspects[1]), Math.max(320, 0.64 * window.innerHeight));
      let x = (width - GAP - height * (aspects[0] + aspects[1])) / 2;
      this.frames.forEach((frame, i) => {
        frame.put(x, 0, height * aspects[i], height);
        x += frame.width + GAP;
      });
      this.height = height;
    } else {
      let y = 0;
      this.frames.forEach((frame, i) => {
        const height = Math.min(width / aspects[i], Math.max(200, 0.42 * window.innerHeight));
        frame.put((width - height * aspects[i]) / 2, y, height * aspects[i], height);
        y += height + GAP;
      });
      this.height = y - GAP;
    }
    this.width = width;
    this.box.style.height = `${this.height}px`;
  }

  toScreen(image, pixel) {
    return this.frames[image].toScreen(pixel);
  }

  // The image under a place on the screen, and the pixel there; null between the images.
  toPixel(place) {
    const image = this.frames.findIndex((frame) => frame.contains(place));
    return image < 0 ? null : { image, pixel: this.frames[image].toPixel(place) };
  }

  // Whether both ends of a match are in sight.
  showsBoth(ends) {
    return ends.every((end, image) => this.frames[image].shows(end));
  }

  isShown(match) {
    return this.only ? this.only.has(match) : this.probabilities[match] >= 255 * this.threshold;
  }

  // The shown match nearest to a place on the screen, or null.
  matchAt(place, reach) {
    const hit = this.toPixel(place);
    if (!hit) return null;
    const { scale } = this.frames[hit.image];
    let [best, nearest] = [null, (reach / scale) ** 2];
    for (let match = 0; match < numMatches; match++) {
      const dx = points[hit.image][2 * match] - hit.pixel[0];
      const dy = points[hit.image][2 * match + 1] - hit.pixel[1];
      // Of two the likelier one is meant, unless the other is twice as near.
      const distance = (dx * dx + dy * dy) * (4 - (3 * this.probabilities[match]) / 255);
      if (distance < nearest && this.isShown(match)) [best, nearest] = [match, distance];
    }
    return best;
  }

  drawAll() {
    this.layOut();
    this.drawView();
  }

  drawView() {
    this.drawImages();
    this.drawMatches();
  }

  drawImages() {
    const context = prepare(this.layers.images, this.width, this.height);
    const [paper, ink] = [themeColour("frame"), themeColour("frame-dots")];
    this.frames.forEach((frame, i) => {
      if (this.pictures[i]) {
        context.save();
        frame.clip(context);
        context.imageSmoothingQuality = "high"; // pictures may have many more pixels than the screen
        const { left, top, zoom, width, height } = frame;
        context.drawImage(this.pictures[i], left, top, zoom * width, zoom * height);
        context.restore();
        // Less colour and a veil calm the picture, so that the matches stand out.
        for (const [mode, colour] of [["saturation", "rgb(128 128 128 / 0.3)"], ["source-over", themeColour("veil")]]) {
          context.globalCompositeOperation = mode;
          context.fillStyle = colour;
          context.fillRect(frame.x, frame.y, frame.width, frame.height);
        }
      } else {
        context.fillStyle = paper;
        context.fillRect(frame.x, frame.y, frame.width, frame.height);
        context.fillStyle = ink;
        for (let y = frame.y + 12; y < frame.y + frame.height - 4; y += 24) {
          for (let x = frame.x + 12; x < frame.x + frame.width - 4; x += 24) context.fillRect(x, y, 1.2, 1.2);
        }
      }
      this.drawNumber(context, frame, i + 1);
    });
  }

  // The image's number, as the cameras in the 3-D view have it.
  drawNumber(context, { x, y }, text) {
    context.fillStyle = themeColour("card");
    this.fillBadge(context, { x, y });
    Object.assign(context, { fillStyle: themeColour("ink"), textAlign: "center", textBaseline: "middle" });
    context.font = `600 12px ${getComputedStyle(this.box).fontFamily}`;
    context.fillText(text, x + 18, y + 18.5);
  }

  // The ground of an image's number.
  fillBadge(context, { x, y }) {
    context.beginPath();
    context.roundRect(x + 8, y + 8, 20, 20, 5);
    context.fill();
  }

  // Matches by rising probability, so that the likely ones lie on top: counting sort by 8-bit probability.
  order() {
    const starts = new Uint32Array(257);
    for (const value of this.probabilities) starts[Math.round(value) + 1]++;
    for (let i = 0; i < 256; i++) starts[i + 1] += starts[i];
    const sorted = new Uint32Array(numMatches);
    for (let match = 0; match < numMatches; match++) sorted[starts[Math.round(this.probabilities[match])]++] = match;
    return sorted;
  }

  // At most so many matches of a list by rising probability: the most probable one of every cell of image 1, then the
  // second ones, and so on; by rising probability again.
  spread(matches, limit) {
    if (matches.length <= limit) return matches;
    const taken = new Uint32Array(CELLS * CELLS);
    const cellOf = (match) => {
      const cell = pointOf(0, match).map((value, axis) => Math.floor((CELLS * value) / report.images[0].size[axis]));
      return clamp(cell[0], 0, CELLS - 1) + CELLS * clamp(cell[1], 0, CELLS - 1);
    };
    const ranks = new Uint32Array(matches.length);
    for (let i = matches.length - 1; i >= 0; i--) ranks[i] = taken[cellOf(matches[i])]++;
    const places = Array.from(ranks.keys()).sort((a, b) => ranks[a] - ranks[b] || b - a);
    return places.slice(0, limit).sort((a, b) => a - b).map((place) => matches[place]);
  }

  drawMatches() {
    const context = prepare(this.layers.matches, this.width, this.height);
    const radius = clamp(60 / Math.sqrt(numMatches + 1), 1.3, 2.6) * clamp(this.frames[0].width / 520, 0.7, 1);
    const sorted = this.order().filter((match) => this.isShown(match));
    this.numShown = sorted.length;
    const joined = this.spread(sorted.filter((match) => this.only || Math.round(this.probabilities[match]) > 0), this.maxLines);
    this.numLines = joined.length;
    const expected = joined.reduce((sum, match) => sum + this.probabilities[match], 0) / 255;
    const strength = clamp(30 * (expected + 1) ** -0.72, 0.04, 0.6); // thousands of lines shall not hide the images
    context.lineWidth = 1;
    for (const match of joined) {
      const value = Math.round(this.probabilities[match]);
      context.globalAlpha = this.only ? strength : (value / 255) * strength;
      context.strokeStyle = RAMP[value];
      const ends = [0, 1].map((image) => this.toScreen(image, pointOf(image, match)));
      if (!this.showsBoth(ends)) continue;
      context.beginPath();
      ends.forEach(([x, y]) => context.lineTo(x, y));
      context.stroke();
    }
    for (const match of sorted) {
      const value = Math.round(this.probabilities[match]);
      context.globalAlpha = 0.3 + 0.65 * (value / 255); // the places of unlikely ones stay visible
      context.fillStyle = RAMP[value];
      for (const image of [0, 1]) {
        const [x, y] = this.toScreen(image, pointOf(image, match));
        if (!this.frames[image].shows([x, y])) continue;
        context.beginPath();
        context.arc(x, y, radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
    context.globalAlpha = 1;
    context.globalCompositeOperation = "destination-out"; // the images' numbers, a layer below, stay readable
    this.frames.forEach((frame) => this.fillBadge(context, frame));
    context.globalCompositeOperation = "source-over";
  }

  // What is pointed at: a match, {match}, or a pixel, {image, pixel}; null clears. A match that is kept is magnified.
  drawFocus(focus, { F, H }, kept) {
    const context = prepare(this.layers.overlay, this.width, this.height);
    if (!focus) return;
    const isMatch = focus.match !== undefined;
    const pixels = isMatch ? [0, 1].map((image) => pointOf(image, focus.match)) : [];
    if (!isMatch) pixels[focus.image] = focus.pixel;
    const ends = pixels.map((pixel, image) => this.toScreen(image, pixel));
    const colour = isMatch ? RAMP[Math.round(this.probabilities[focus.match])] : themeColour("line");
    let curves = [[], []];
    if (F) curves = isMatch ? curvesOfMatch(F, focus.match) : curvesOfPixel(F, focus.image, focus.pixel);
    const partners = H ? partnersOf(H, pixels) : [null, null];
    curves.forEach((curve, image) => {
      context.save();
      this.frames[image].clip(context);
      this.strokeTwice(context, curve.map((point) => this.toScreen(image, point)), 2, themeColour("line"));
      if (partners[image]) this.drawCross(context, this.toScreen(image, partners[image]));
      context.restore();
    });
    if (isMatch && this.showsBoth(ends)) this.strokeTwice(context, ends, 1.5, colour, [5, 4]);
    ends.forEach((end, image) => this.frames[image].shows(end) && this.drawRing(context, end, 5.5, colour));
    if (!isMatch || !kept) return;
    for (const image of [0, 1]) this.drawLoupe(context, image, focus.match, curves[image], partners[image], colour);
  }

  // A circle in the image's outer corner that shows the place of a point much larger, unless the image itself does. If
  // the match was refined, it shows the patch around the point and, in image 2, a brown ring at the given point.
  drawLoupe(context, image, match, curve, partner, colour) {
    const frame = this.frames[image];
    const [pixel, given] = [pointOf(image, match), givenOf(match)];
    const radius = clamp(0.17 * Math.min(frame.height, frame.width), 40, 84);
    const zoom = Math.max((LOUPE * frame.scale) / frame.zoom, given ? radius / PATCH : 2);
    if (zoom < 1.5 * frame.scale) return;
    const [px, py] = this.toScreen(image, pixel);
    const x = image === 0 ? frame.x + radius + 8 : frame.x + frame.width - radius - 8;
    const low = frame.y + frame.height - radius - 8;
    const y = Math.hypot(px - x, py - low) > radius + 20 ? low : frame.y + radius + 8;
    const magnified = ([u, v]) => [x + (u - pixel[0]) * zoom, y + (v - pixel[1]) * zoom];
    context.save();
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.clip();
    context.fillStyle = themeColour("frame");
    context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    const [left, top] = magnified([-0.5, -0.5]);
    const [width, height] = report.images[image].size;
    if (this.pictures[image]) context.drawImage(this.pictures[image], left, top, width * zoom, height * zoom);
    this.strokeTwice(context, curve.map(magnified), 2, themeColour("line"));
    if (partner) this.drawCross(context, magnified(partner));
    if (given && image === 1) {
      this.strokeTwice(context, [magnified(given), [x, y]], 1, themeColour("hypothesis"));
      this.drawRing(context, magnified(given), 4, themeColour("hypothesis"));
    }
    context.restore();
    this.drawRing(context, [x, y], given ? 4 : 7, colour);
    this.drawRing(context, [x, y], radius, colour);
  }

  // Where a homography puts a point.
  drawCross(context, [x, y]) {
    for (const way of [-1, 1]) {
      this.strokeTwice(context, [[x - 6, y - 6 * way], [x + 6, y + 6 * way]], 2, themeColour("line"));
    }
  }

  drawRing(context, [x, y], radius, colour) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.lineWidth = 4;
    context.strokeStyle = themeColour("halo");
    context.stroke();
    context.lineWidth = 2;
    context.strokeStyle = colour;
    context.stroke();
  }

  // A line with a halo: seen on light and on dark pictures alike.
  strokeTwice(context, path, width, colour, dash = []) {
    context.beginPath();
    path.forEach(([x, y]) => context.lineTo(x, y));
    context.lineJoin = "round";
    context.lineWidth = width + 2.5;
    context.strokeStyle = themeColour("halo");
    context.stroke();
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
  }
}
