// What of an answer stands above the fold: the end of each part, words that can be read, width.
parts => {
  const fold = innerHeight, main = document.querySelector(".stMain");
  const ends = {};
  for (const [name, selector] of Object.entries(parts)) {
    const one = document.querySelector(selector);
    ends[name] = one ? Math.round(one.getBoundingClientRect().bottom + main.scrollTop) : null;
  }
  const words = {zh: new Intl.Segmenter("zh", {granularity: "word"}), en: new Intl.Segmenter("en", {granularity: "word"})};
  const language = document.documentElement.lang === "zh" ? "zh" : "en";
  const texts = document.createTreeWalker(main, NodeFilter.SHOW_TEXT);
  let count = 0;
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    if (!text.parentElement.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    if (text.parentElement.closest("style, script")) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const box = range.getBoundingClientRect();
    if (!box.width || box.bottom > fold || box.top < 0) continue;
    count += [...words[language].segment(text.data)].filter(part => part.isWordLike).length;
  }
  const said = {};
  for (const one of main.querySelectorAll(".tk p, .tk li, .tk-h1, .tk-quote, .tk-error, .tk-title")) {
    if (!one.checkVisibility() || one.querySelector("p, li")) continue;
    const text = one.innerText.trim();
    if (text.length > 40) said[text] = (said[text] || 0) + 1;
  }
  return {
    ends, count, fold,
    overflow: Math.max(document.documentElement.scrollWidth - innerWidth, main.scrollWidth - main.clientWidth),
    twice: Object.keys(said).filter(text => said[text] > 1),
  };
}
