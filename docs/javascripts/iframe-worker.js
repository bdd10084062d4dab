// Browsers start no worker in a page that was opened from the disk. The theme's search is one: here it runs in a hidden
// frame instead. The offline plugin would fetch such a script from elsewhere, were there none of this name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.srcdoc = "<!doctype html>";
      this.loaded = new Promise((done) => this.frame.addEventListener("load", done, { once: true }))
        .then(() => this.start(String(new URL(url, location.href))));
      document.body.append(this.frame);
    }

    start(url) {
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = url;
      inside.document.head.append(script);
      return new Promise((done) => script.addEventListener("load", done, { once: true }));
    }

    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
