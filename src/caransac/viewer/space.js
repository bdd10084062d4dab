// The 3-D view: camera 1, the estimate of camera 2, and the hypotheses of the round around it.

const HOME = { yaw: -0.4, pitch: 0.36, distance: 2.65 };
const [LARGE, SMALL] = [0.42, 0.3]; // depth of a camera's pyramid, in baselines

// Models of a degree apart look like one. Their differences from the result are drawn as many times larger as makes the
// largest one of all rounds well seen; the same for all rounds, so that later ones are seen to agree.
const EXAGGERATION = (() => {
  const apart = rounds.flatMap((round) => round.hypotheses.map((hypothesis) => hypothesis.apartDeg ?? Infinity));
  const wanted = apart.length ? 25 / Math.max(...apart) : 1;
  return [10, 5, 2].find((factor) => factor <= wanted) ?? 1;
})();

class Space {
  constructor(canvas) {
    this.canvas = canvas;
    this.exaggeration = EXAGGERATION;
    // A homography has no pose to draw: a plane leaves several open, a rotation has no baseline.
    this.corners = report.images.map((image) => (report.kind === "homography" ? null : image.corners));
    // Turn about a place between the cameras and a little before them, towards what they see.
    const [x, y, z] = report.estimate ? centreOf(report.estimate) : [0, 0, 0];
    this.centre = [x / 2, y / 2, z / 2 + 0.5];
    this.reset();
  }

  reset() {
    Object.assign(this, HOME);
  }

  turn(dx, dy) {
    this.yaw += dx;
    this.pitch = clamp(this.pitch + dy, -1.5, 1.5);
  }

  zoom(factor) {
    this.distance = clamp(this.distance * factor, 0.8, 60);
  }

  // A point of camera 1's frame on the screen: [x, y, depth]; null behind the eye.
  project([x, y, z]) {
    const [dx, dy, dz] = [x - this.centre[0], y - this.centre[1], z - this.centre[2]];
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    const [ax, az] = [cy * dx + sy * dz, cy * dz - sy * dx];
    const depth = sp * dy + cp * az + this.distance;
    if (depth < 0.05) return null;
    const focal = 1.15 * Math.min(this.height, 0.75 * this.width);
    return [this.width / 2 + (focal * ax) / depth, this.height / 2 + (focal * (cp * dy - sp * az)) / depth, depth];
  }

  draw(round, probabilities) {
    [this.width, this.height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    const context = prepare(this.canvas);
    if (!this.corners[0] || !this.corners[1]) return;
    this.drawSphere(context);
    this.drawCloud(context, probabilities);
    const ink = themeColour("ink");
    this.drawCamera(context, { R: [1, 0, 0, 0, 1, 0, 0, 0, 1], t: [0, 0, 0] }, 0, LARGE, ink, 1, 1.5, "1");
    const best = round.hypotheses[0]?.consensus || 1;
    for (const hypothesis of [...round.hypotheses].reverse()) {
      const strength = 0.25 + 0.6 * (hypothesis.consensus / best);
      const shown = exaggerate(hypothesis, report.estimate, this.exaggeration);
      this.drawCamera(context, shown, 1, SMALL, themeColour("hypothesis"), strength, 1.25);
    }
    if (report.estimate) {
      const colour = themeColour("line");
      this.stroke(context, [[0, 0, 0], centreOf(report.estimate)], colour, 0.5, 1, [3, 4]);
      this.drawCamera(context, report.estimate, 1, LARGE, colour, 1, 2, "2");
    }
  }

  // The translation is a direction: all second cameras lie on the sphere of radius one around the first.
  drawSphere(context) {
    const colour = themeColour("faint");
    for (let ring = 0; ring < 3; ring++) {
      const path = Array.from({ length: 73 }, (_, i) => {
        const [c, s] = [Math.cos((i * Math.PI) / 36), Math.sin((i * Math.PI) / 36)];
        return [[c, 0, s], [c, s, 0], [0, c, s]][ring];
      });
      this.stroke(context, path, colour, ring === 0 ? 0.9 : 0.4, 1);
    }
  }

  drawCloud(context, probabilities) {
    if (!cloud) return;
    cloud.index.forEach((match, i) => {
      const place = this.project([cloud.points[3 * i], cloud.points[3 * i + 1], cloud.points[3 * i + 2]]);
      const value = Math.round(probabilities[match]);
      if (!place || value < 3) return;
      const size = clamp(9 / place[2], 0.8, 3);
      context.globalAlpha = (0.85 * value) / 255;
      context.fillStyle = RAMP[value];
      context.fillRect(place[0] - size / 2, place[1] - size / 2, size, size);
    });
    context.globalAlpha = 1;
  }

  drawCamera(context, pose, image, size, colour, strength, width, label = "") {
    const eye = centreOf(pose);
    const corners = this.corners[image].map(([x, y]) => toWorld(pose, [size * x, size * y, size]));
    this.fill(context, corners, colour, 0.12 * strength);
    this.stroke(context, [...corners, corners[0]], colour, strength, width);
    for (const corner of corners) this.stroke(context, [eye, corner], colour, 0.8 * strength, width);
    const place = this.project(eye);
    if (label && place) {
      context.fillStyle = colour;
      context.font = `600 12px ${getComputedStyle(this.canvas).fontFamily}`;
      context.fillText(label, place[0] - 3, place[1] + 18);
    }
  }

  trace(context, path) {
    context.beginPath();
    path.map((point) => this.project(point)).forEach((place) => place && context.lineTo(place[0], place[1]));
  }

  stroke(context, path, colour, alpha, width, dash = []) {
    this.trace(context, path);
    Object.assign(context, { globalAlpha: alpha, strokeStyle: colour, lineWidth: width, lineJoin: "round" });
    context.setLineDash(dash);
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }

  fill(context, path, colour, alpha) {
    this.trace(context, path);
    Object.assign(context, { globalAlpha: alpha, fillStyle: colour });
    context.fill();
    context.globalAlpha = 1;
  }
}

// x2 = R x1 + t, so a point of camera 2 lies at R^T (x2 - t) in the frame of camera 1.
function toWorld({ R, t }, point) {
  const [x, y, z] = point.map((value, i) => value - t[i]);
  return [0, 1, 2].map((i) => R[i] * x + R[i + 3] * y + R[i + 6] * z);
}

// The pose that differs from the estimate in the same ways, `factor` times as much.
function exaggerate(pose, estimate, factor) {
  if (!estimate || factor === 1) return pose;
  const R = multiply(rotation(rotationVector(multiply(pose.R, transpose(estimate.R))), factor), estimate.R);
  const [from, to] = [centreOf(estimate), centreOf(pose)];
  const axis = cross(from, to);
  const sine = Math.hypot(...axis);
  const cosine = from[0] * to[0] + from[1] * to[1] + from[2] * to[2];
  const scale = sine > 0 ? Math.atan2(sine, cosine) / sine : 0;
  const centre = times(rotation(axis.map((value) => value * scale), factor), from);
  return { R, t: times(R, centre).map((value) => -value) };
}

const transpose = (M) => [0, 3, 6, 1, 4, 7, 2, 5, 8].map((i) => M[i]);
const times = (M, v) => [0, 3, 6].map((row) => M[row] * v[0] + M[row + 1] * v[1] + M[row + 2] * v[2]);
const multiply = (A, B) => transpose([0, 1, 2].flatMap((i) => times(A, [B[i], B[i + 3], B[i + 6]])));

// Axis times angle of a rotation by less than half a turn.
function rotationVector(R) {
  const vector = [R[7] - R[5], R[2] - R[6], R[3] - R[1]];
  const sine = Math.hypot(...vector) / 2;
  if (!(sine > 0)) return [0, 0, 0];
  const angle = Math.atan2(sine, (R[0] + R[4] + R[8] - 1) / 2);
  return vector.map((value) => (value * angle) / (2 * sine));
}

// Rotation about a vector by `factor` times its length, by Rodrigues' formula.
function rotation(vector, factor) {
  const length = Math.hypot(...vector);
  if (!(length > 0)) return [1, 0, 0, 0, 1, 0, 0, 0, 1];
  const [x, y, z] = vector.map((value) => value / length);
  const [c, s] = [Math.cos(factor * length), Math.sin(factor * length)];
  const d = 1 - c;
  return [
    c + d * x * x, d * x * y - s * z, d * x * z + s * y,
    d * x * y + s * z, c + d * y * y, d * y * z - s * x,
    d * x * z - s * y, d * y * z + s * x, c + d * z * z,
  ];
}

const centreOf = (pose) => toWorld(pose, [0, 0, 0]);
