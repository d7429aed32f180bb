// Draws the specifications that pages hold, again when the theme changes.
document.addEventListener("DOMContentLoaded", () => {
  const dark = () => {
    const theme = document.body.dataset.theme;
    return theme === "dark" ||
      (theme !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  };
  const draw = () => {
    for (const figure of document.querySelectorAll(".vega-figure")) {
      const spec = JSON.parse(figure.querySelector("script").textContent);
      spec.width = Math.min(spec.width || 560, figure.clientWidth - 90, innerWidth - 130);
      const ink = dark() ? "#ececef" : "#1d1d1f", grid = dark() ? "#303036" : "#ececef";
      const axis = { labelColor: ink, titleColor: ink, gridColor: grid, domainColor: ink,
        tickColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal" };
      const config = { background: "transparent", view: { stroke: null }, axis,
        legend: { labelColor: ink, titleColor: ink, orient: "bottom", labelLimit: 300, columns: 2 } };
      window.vegaEmbed(figure.querySelector(".drawing"), spec, { actions: false, config });
    }
  };
  draw();
  new MutationObserver(draw).observe(document.body, { attributeFilter: ["data-theme"] });
  let waiting, wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return;
    wide = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 200);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
});
