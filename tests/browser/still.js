// Whether the page has been drawn to its end: no script runs for it, each chart is painted, and
// height, charts and what is drawn in them have been the same for so many milliseconds, and as often
// as a browser looks in that time: one that gets no processor time sees no change either.
quiet => {
  const charts = [...document.querySelectorAll(".stVegaLiteChart")]
    .filter(chart => chart.checkVisibility())
    .map(chart => chart.querySelector("canvas, svg"));
  const painted = charts.every(chart => {
    if (!chart || !chart.clientWidth || !chart.clientHeight) return false;
    if (chart.tagName !== "CANVAS") return true;
    const pixels = chart.getContext("2d").getImageData(0, 0, chart.width, chart.height);
    return pixels.data.some(value => value);
  });
  const coming = document.querySelector("[data-testid=stSkeleton]");
  const main = document.querySelector(".stMain");
  const now = [main.scrollHeight, innerHeight, main.querySelectorAll("*").length, ...charts];
  const before = window.tkStill;
  const same = before && before.now.length === now.length
    && now.every((one, at) => one === before.now[at]);
  if (!same || !painted || coming) window.tkStill = {now, looks: 0, since: performance.now()};
  window.tkStill.looks += 1;
  const drawn = document.querySelector(".stApp[data-test-script-state=notRunning]");
  const calm = performance.now() - window.tkStill.since >= quiet && window.tkStill.looks * 30 >= quiet;
  return Boolean(drawn) && calm;
}
