// Every visible text with less contrast to its ground than `least`; what is switched off is exempt.
least => {
  const EXEMPT = '[disabled], [aria-disabled=true], [data-testid=stIconMaterial], style, script, svg';
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});

  // Any colour CSS can write, painted over an opaque one, as [red, green, blue].
  const over = (ground, colour) => {
    for (const style of [`rgb(${ground})`, colour]) {
      canvas.fillStyle = style;
      canvas.fillRect(0, 0, 1, 1);
    }
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const groundOf = element => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      layers.push(getComputedStyle(at).backgroundColor);
    }
    return layers.reverse().reduce(over, [255, 255, 255]);
  };
  const luminance = colour => colour
    .map(value => value / 255)
    .map(share => share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4)
    .reduce((sum, value, at) => sum + value * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (ground, ink) => {
    const [low, high] = [luminance(ground), luminance(ink)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const shown = element => {
    const box = element.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && !element.closest(EXEMPT)
      && element.checkVisibility({visibilityProperty: true, opacityProperty: true});
  };

  const faint = {};
  let count = 0;
  const walker = document.createTreeWalker(document.querySelector('.stApp'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const element = walker.currentNode.parentElement;
    if (!text || !shown(element)) continue;
    count += 1;
    const ground = groundOf(element);
    const ink = over(ground, getComputedStyle(element).color);
    const found = contrast(ground, ink);
    if (found < least) faint[text.slice(0, 40)] = `${found.toFixed(2)}: ${ink} on ${ground}`;
  }
  return {count, faint};
}
