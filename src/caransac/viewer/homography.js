// Homographies: where a pixel of one image lies in the other one.

function inverseRows(H) {
  const [a, b, c] = rowsOf(H);
  const columns = [cross(b, c), cross(c, a), cross(a, b)];
  const determinant = a[0] * columns[0][0] + a[1] * columns[0][1] + a[2] * columns[0][2];
  return [0, 1, 2].map((row) => columns.map((column) => column[row] / determinant));
}

// The partner of a pixel; null behind the camera, or beyond what a lens can see.
function transfer(H, image, pixel) {
  const undistorted = lenses[image].undistort(pixel);
  if (!undistorted) return null;
  const [x, y, w] = apply(image === 0 ? rowsOf(H) : inverseRows(H), undistorted);
  return w > 0 ? lenses[1 - image].redistort([x / w, y / w]) : null;
}

// Where the homography puts what is pointed at: in each image the partner of what the other one has, or null.
function partnersOf(H, pixels) {
  return [1, 0].map((other) => (pixels[other] ? transfer(H, other, pixels[other]) : null));
}
