// What makes the page scroll sideways: the first elements beyond the right edge, or nothing.
() => {
  const main = document.querySelector('.stMain');
  const page = document.documentElement;
  if (page.scrollWidth <= innerWidth && main.scrollWidth <= main.clientWidth) return [];
  const beyond = [...main.querySelectorAll('*')]
    .filter(one => one.getBoundingClientRect().right > innerWidth + 1)
    .map(one => one.outerHTML.slice(0, 120));
  return beyond.length ? beyond.slice(0, 5) : [`${page.scrollWidth} of ${innerWidth} pixels`];
}
