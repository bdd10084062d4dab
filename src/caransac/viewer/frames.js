// The frames of the images on the stage: where each lies, and which part of its image it shows.

const LARGEST_PIXEL = 12; // CSS pixels of an image's pixel, at most

class Frame {
  constructor(size) {
    this.size = size;
    this.reset();
  }

  // The whole image: its middle is in the middle, in shares of its width and height.
  reset() {
    Object.assign(this, { zoom: 1, centre: [0.5, 0.5] });
    if (this.width) this.update();
  }

  put(x, y, width, height) {
    Object.assign(this, { x, y, width, height });
    this.update();
  }

  // The scale, and where the image's top-left corner lies in CSS pixels. The image always fills its frame.
  update() {
    this.zoom = clamp(this.zoom, 1, Math.max(4, (LARGEST_PIXEL * this.size[0]) / this.width));
    this.centre = this.centre.map((share) => clamp(share, 0.5 / this.zoom, 1 - 0.5 / this.zoom));
    this.scale = (this.zoom * this.width) / this.size[0];
    this.left = this.x + this.width * (0.5 - this.zoom * this.centre[0]);
    this.top = this.y + this.height * (0.5 - this.zoom * this.centre[1]);
  }

  get magnified() {
    return this.zoom > 1;
  }

  get middle() {
    return [this.x + this.width / 2, this.y + this.height / 2];
  }

  // What is at a place of the screen stays there.
  magnify(factor, place = this.middle) {
    const pixel = this.toPixel(place);
    this.zoom *= factor;
    this.update();
    const [x, y] = this.toScreen(pixel);
    this.move(place[0] - x, place[1] - y);
  }

  move(dx, dy) {
    const [x, y] = this.centre;
    this.centre = [x - dx / (this.zoom * this.width), y - dy / (this.zoom * this.height)];
    this.update();
  }

  // Moves a pixel that is out of sight into the middle.
  reveal(pixel) {
    const [x, y] = this.toScreen(pixel);
    if (!this.shows([x, y])) this.move(this.middle[0] - x, this.middle[1] - y);
  }

  // The centre of the image's top-left pixel is (0, 0), half a pixel inside.
  toScreen([x, y]) {
    return [this.left + (x + 0.5) * this.scale, this.top + (y + 0.5) * this.scale];
  }

  toPixel([x, y]) {
    return [(x - this.left) / this.scale - 0.5, (y - this.top) / this.scale - 0.5];
  }

  contains([x, y]) {
    return x >= this.x && x <= this.x + this.width && y >= this.y && y <= this.y + this.height;
  }

  // Whether something at a place is drawn. Around a whole image, points beyond its border are.
  shows(place) {
    return !this.magnified || this.contains(place);
  }

  clip(context) {
    context.beginPath();
    context.rect(this.x, this.y, this.width, this.height);
    context.clip();
  }
}
