"""What is wrong with the layout of a page, found by a script that runs in the browser."""

# Each fault is [what, the text, more]: text that is cut, that lies on other text, or that is pale.
FAULTS = r"""
(() => {
  const found = [], root = document.documentElement, range = document.createRange();
  if (root.scrollWidth > root.clientWidth) found.push(["too wide", "", root.scrollWidth]);
  const numbers = colour => colour.match(/[\d.]+/g).map(Number);
  const luminance = colour => numbers(colour).slice(0, 3)
    .map(c => c / 255).map(c => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = each => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if ((numbers(colour)[3] ?? 1) > 0) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const frame = each => {  // where text may be: its picture, what scrolls, its cell or card
    const svg = each.closest("svg");
    if (svg) return svg.getBoundingClientRect();
    for (let e = each; e && e !== document.body; e = e.parentElement) {
      const box = e.getBoundingClientRect(), style = getComputedStyle(e);
      if (style.overflowX === "auto") {
        const left = box.left - e.scrollLeft, top = box.top - e.scrollTop;
        return {left, right: left + e.scrollWidth, top, bottom: top + e.scrollHeight};
      }
      if (/^(TD|TH|SECTION)$/.test(e.tagName)) return box;
    }
    return {left: 0, right: root.clientWidth, top: -1e9, bottom: 1e9};
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), each = walker.currentNode.parentElement;
    if (!text || each.closest("script, style")) continue;
    range.selectNodeContents(walker.currentNode);
    const boxes = [...range.getClientRects()].filter(box => box.width && box.height);
    const may = boxes.length && frame(each);
    for (const box of boxes) {
      if (box.left < may.left - 1 || box.right > may.right + 1 || box.top < may.top - 1
          || box.bottom > may.bottom + 1) { found.push(["cut", text, box.toJSON()]); break; }
    }
    if (!boxes.length) continue;
    const style = getComputedStyle(each), ink = each.closest("svg") ? style.fill : style.color;
    const [one, other] = [luminance(ink), luminance(ground(each))].sort((a, b) => b - a);
    const contrast = (one + 0.05) / (other + 0.05);
    if (contrast < 4.5) found.push(["pale", text, contrast]);
  }
  for (const svg of document.querySelectorAll("svg")) {
    const texts = [], inside = document.createTreeWalker(svg, NodeFilter.SHOW_TEXT);
    while (inside.nextNode()) {
      range.selectNodeContents(inside.currentNode);
      const of = inside.currentNode.parentElement.closest("text");
      if (of && inside.currentNode.data.trim())
        texts.push([inside.currentNode.data, range.getBoundingClientRect(), of]);
    }
    texts.forEach(([text, a, of], i) => texts.slice(i + 1).forEach(([other, b, its]) => {
      if (of === its) return;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) found.push(["on other text", text, other]);
    }));
  }
  return found.slice(0, 20);
})()
"""
# Of the longest table that is also too wide, after it was scrolled: whether it did, how far its
# header row and its first column are from where they should stay, and whether their corner is free.
STICKY = r"""
(() => {
  const [each] = [...document.querySelectorAll(".wide")]
    .filter(one => one.scrollWidth > one.clientWidth)
    .sort((a, b) => b.scrollHeight - a.scrollHeight);
  each.scrollIntoView();
  each.scrollTo(40, 60);
  const box = each.getBoundingClientRect(), rows = each.querySelectorAll("tr");
  const head = rows[0].cells[1].getBoundingClientRect();
  const first = rows[rows.length - 1].cells[0].getBoundingClientRect();
  const corner = document.elementFromPoint(box.left + 5, box.top + 5).closest("th");
  return [each.scrollLeft > 0 && each.scrollTop > 0, head.top - box.top, first.left - box.left,
    corner === rows[0].cells[0]];
})()
"""
