"use strict";
// Charts are drawn when they come near the screen: a page of fifty is at hand at once.
(() => {
  const names = {
    "00": "--ink", "01": "--muted", "02": "--chart-grid", "03": "--bad", "04": "--chart-band", "05": "--chart-empty",
    "10": "--s0", "11": "--s1", "12": "--s2", "13": "--s3", "14": "--s4", "15": "--s5", "16": "--s6", "17": "--s7",
  };
  const drawn = new Map();
  const plots = [...document.querySelectorAll(".plot")];

  function themed(text) {
    const style = getComputedStyle(document.documentElement);
    return text.replace(/"#0101([01][0-7])"/g, (_, code) => JSON.stringify(style.getPropertyValue(names[code]).trim()));
  }

  async function draw(element) {
    if (drawn.has(element)) return;
    drawn.set(element, null);
    const item = JSON.parse(themed(element.parentElement.querySelector("script").textContent));
    element.textContent = "";
    const view = await Bokeh.embed.embed_item(item, element);
    // A finger that moves over a chart scrolls the page.
    for (const figure of figures(view)) {
      if (matchMedia("(pointer: coarse)").matches) figure.toolbar.active_drag = null;
      for (const legend of figure.below.filter((one) => "ncols" in one && one.items)) {
        const longest = Math.max(...legend.items.map((one) => String(one.label.value ?? "").length));
        legend.ncols = Math.max(1, Math.min(4, Math.floor((element.clientWidth - 80) / (longest * 7 + 50))));
      }
    }
    drawn.set(element, view);
    element.dataset.drawn = "yes";
  }

  function figures(view) {
    return [...view.roots].map((root) => root.model).filter((model) => model.type === "Figure");
  }

  function drawAll() {
    return Promise.all(plots.map(draw));
  }

  for (const element of plots) element.style.minHeight = element.dataset.height + "px";
  const observer = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) {
        observer.unobserve(entry.target);
        draw(entry.target);
      }
    }
  }, { rootMargin: "400px" });
  for (const element of plots) observer.observe(element);

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    const again = [...drawn.keys()];
    for (const view of drawn.values()) if (view) view.clear();
    drawn.clear();
    again.forEach(draw);
  });
  addEventListener("beforeprint", drawAll);

  // Links to a folded rule open it.
  function unfold() {
    const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") {
      target.open = true;
      target.scrollIntoView();
    }
  }
  addEventListener("hashchange", unfold);
  unfold();

  function ranges(element) {
    const view = drawn.get(element);
    const [model] = view ? figures(view) : [];
    return model ? [model, model.x_range] : [];
  }

  document.addEventListener("keydown", (event) => {
    const element = event.target;
    if (!(element instanceof Element) || !element.classList.contains("plot")) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [model, range] = ranges(element);
    if (!range || typeof range.start !== "number") return;
    const width = range.end - range.start;
    const middle = (range.start + range.end) / 2;
    const moves = {
      ArrowLeft: () => range.setv({ start: range.start - width / 5, end: range.end - width / 5 }),
      ArrowRight: () => range.setv({ start: range.start + width / 5, end: range.end + width / 5 }),
      "+": () => range.setv({ start: middle - width / 4, end: middle + width / 4 }),
      "=": () => moves["+"](),
      "-": () => range.setv({ start: middle - width, end: middle + width }),
      0: () => model.reset.emit(),
    };
    const move = moves[event.key];
    if (move) {
      event.preventDefault();
      move();
    }
  });

  globalThis.smdbgReport = { drawAll, plots };
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
