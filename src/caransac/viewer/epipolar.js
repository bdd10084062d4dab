// Epipolar lines: straight ones of a fundamental matrix, bent by the lens where there is one.

const cross = ([a, b, c], [d, e, f]) => [b * f - c * e, c * d - a * f, a * e - b * d];
const rowsOf = (F) => [F.slice(0, 3), F.slice(3, 6), F.slice(6, 9)];
const columnsOf = (F) => [0, 1, 2].map((i) => [F[i], F[i + 3], F[i + 6]]);
const apply = (rows, [x, y]) => rows.map(([a, b, c]) => a * x + b * y + c);

// The epipole: what a matrix of rank two sends to zero is orthogonal to its rows.
function nullVector(rows) {
  const candidates = [cross(rows[0], rows[1]), cross(rows[1], rows[2]), cross(rows[2], rows[0])];
  return candidates.reduce((best, vector) => (Math.hypot(...vector) > Math.hypot(...best) ? vector : best));
}

// An image without distortion: its pixels stay where they are.
class Pinhole {
  constructor([width, height]) {
    this.far = 4 * (width + height);
  }

  undistort(pixel) {
    return pixel;
  }

  redistort(pixel) {
    return pixel;
  }

  // Two points of the line a x + b y + c = 0, far apart around the point nearest to (x, y).
  curve([a, b, c], [x, y]) {
    const length = Math.hypot(a, b);
    if (!(length > 0)) return [];
    const offset = (a * x + b * y + c) / length;
    const foot = [x - (offset * a) / length, y - (offset * b) / length];
    return [-this.far, this.far].map((way) => [foot[0] - (way * b) / length, foot[1] + (way * a) / length]);
  }
}

// Radius in the image by the tangent of the angle to the axis, and its inverse, as caransac.geometry.lens has them.
const PROJECTIONS = {
  FISHEYE: [Math.atan, (r) => (r < Math.PI / 2 ? Math.tan(r) : NaN)],
  FOV: [(t, w) => Math.atan(2 * t * Math.tan(w / 2)) / w, (r, w) => Math.tan(r * w) / (2 * Math.tan(w / 2))],
  DIVISION: [(t, k) => (2 * t) / (1 + Math.sqrt(1 - 4 * k * t * t)), (r, k) => r / (1 + k * r * r)],
  EUCM: [
    (t, a, b) => t / (a * Math.sqrt(b * t * t + 1) + 1 - a),
    (r, a, b) => (r * (a * Math.sqrt(1 - (2 * a - 1) * b * r * r) + 1 - a)) / (1 - a * a * b * r * r),
  ],
};

// A distorting lens, as caransac.geometry.lens has it; a fisheye displaces its projection of rays instead of rays.
class Lens {
  constructor(parameters) {
    Object.assign(this, parameters);
    const [name, ...numbers] = parameters.projection ?? [];
    [this.project, this.unproject] = (PROJECTIONS[name] ?? []).map((each) => (radius) => each(radius, ...numbers));
  }

  // Displaced coordinates and their derivatives.
  displace([x, y]) {
    const { k1, k2, k3, k4, d1, d2, d3, p1, p2, sx1, sy1 } = this;
    const squared = x * x + y * y;
    const divisor = 1 + squared * (d1 + squared * (d2 + squared * d3));
    const radial = (1 + squared * (k1 + squared * (k2 + squared * (k3 + squared * k4)))) / divisor;
    const rising = k1 + squared * (2 * k2 + squared * (3 * k3 + squared * 4 * k4));
    const slope = (2 / divisor) * (rising - radial * (d1 + squared * (2 * d2 + squared * 3 * d3)));
    const mixed = slope * x * y + 2 * p1 * x + 2 * p2 * y;
    return {
      u: x * radial + 2 * p1 * x * y + p2 * (squared + 2 * x * x) + sx1 * squared,
      v: y * radial + 2 * p2 * x * y + p1 * (squared + 2 * y * y) + sy1 * squared,
      ux: radial + slope * x * x + 2 * p1 * y + 6 * p2 * x + 2 * sx1 * x,
      uy: mixed + 2 * sx1 * y,
      vx: mixed + 2 * sy1 * x,
      vy: radial + slope * y * y + 2 * p2 * x + 6 * p1 * y + 2 * sy1 * y,
    };
  }

  // The pixel of a ray.
  distort([x, y]) {
    const radius = Math.hypot(x, y);
    const scale = this.project && radius > 0 ? this.project(radius) / radius : 1;
    const { u, v } = this.displace([scale * x, scale * y]);
    return [this.fx * u + this.cx, this.fy * v + this.cy];
  }

  // The pixel that an ideal lens would show, by Newton's method; null beyond what the lens can see.
  undistort([px, py]) {
    const [u, v] = [(px - this.cx) / this.fx, (py - this.cy) / this.fy];
    let [x, y] = [u, v];
    for (let step = 0; step < 20; step++) {
      const { ux, uy, vx, vy, ...displaced } = this.displace([x, y]);
      const [du, dv] = [displaced.u - u, displaced.v - v];
      const determinant = ux * vy - uy * vx;
      x -= (vy * du - uy * dv) / determinant;
      y -= (ux * dv - vx * du) / determinant;
    }
    const { u: endU, v: endV } = this.displace([x, y]);
    const radius = Math.hypot(x, y);
    const scale = this.project && radius > 0 ? this.unproject(radius) / radius : 1;
    const converged = Math.hypot(endU - u, endV - v) < 1e-9 && scale > 0 && scale * radius <= 1.05 * this.reach;
    return converged ? [this.fx * scale * x + this.cx, this.fy * scale * y + this.cy] : null;
  }

  // The pixel where the lens shows what an ideal one shows at a pixel; null beyond its reach.
  redistort([px, py]) {
    const ray = [(px - this.cx) / this.fx, (py - this.cy) / this.fy];
    return Math.hypot(...ray) <= 1.05 * this.reach ? this.distort(ray) : null;
  }

  // The line of undistorted pixels as the lens shows it, within its reach.
  curve([a, b, c]) {
    const line = [a * this.fx, b * this.fy, a * this.cx + b * this.cy + c]; // of rays
    const length = Math.hypot(line[0], line[1]);
    const [nx, ny, offset] = line.map((value) => value / length);
    if (!(length > 0) || Math.abs(offset) >= this.reach) return [];
    const half = Math.sqrt(this.reach ** 2 - offset ** 2);
    // Evenly in angle for a fisheye, whose far rays are crowded in the image.
    const nearest = Math.hypot(1, offset);
    const turn = this.project ? Math.atan(half / nearest) : half;
    return Array.from({ length: 97 }, (_, i) => {
      const part = turn * (i / 48 - 1);
      const way = this.project ? nearest * Math.tan(part) : part;
      return this.distort([-offset * nx - way * ny, -offset * ny + way * nx]);
    });
  }
}

const lenses = report.images.map((image) => (image.lens ? new Lens(image.lens) : new Pinhole(image.size)));

// The two epipolar curves of a match: in each image the one its partner in the other image demands.
function curvesOfMatch(F, match) {
  const [first, second] = [0, 1].map((image) => lenses[image].undistort(pointOf(image, match)));
  return [
    second ? lenses[0].curve(apply(columnsOf(F), second), first ?? second) : [],
    first ? lenses[1].curve(apply(rowsOf(F), first), second ?? first) : [],
  ];
}

// The two epipolar curves of the plane through a pixel of one image: one through the pixel, one where its partner lies.
function curvesOfPixel(F, image, pixel) {
  const undistorted = lenses[image].undistort(pixel);
  if (!undistorted) return [[], []];
  const matrix = image === 0 ? rowsOf(F) : columnsOf(F);
  const through = lenses[image].curve(cross(nullVector(matrix), [...undistorted, 1]), undistorted);
  const [width, height] = report.images[1 - image].size;
  const partner = lenses[1 - image].curve(apply(matrix, undistorted), [width / 2, height / 2]);
  return image === 0 ? [through, partner] : [partner, through];
}
