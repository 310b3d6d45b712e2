// Words of at least 12 pixels that cannot be told from what is behind them, and smaller ones.
// The least contrast of a control's words with what is behind them, as WCAG 2 has it.
root => {
  const contrast = control => {
  const numbers = colour => {
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const over = ([r, g, b, a], [x, y, z]) => [[r, x], [g, y], [b, z]].map(([c, d]) => (c * a + d * (255 - a)) / 255);
  const linear = c => c / 255 <= .03928 ? c / 255 / 12.92 : ((c / 255 + .055) / 1.055) ** 2.4;
  const light = colour => colour.map(linear).reduce((sum, c, i) => sum + c * [.2126, .7152, .0722][i], 0);
  const behind = node => node ? over(numbers(getComputedStyle(node).backgroundColor), behind(node.parentElement))
    : [255, 255, 255];
  const contrast = node => {
    const under = behind(node), [a, b] = [over(numbers(getComputedStyle(node).color), under), under].map(light);
    return (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  };
  const words = [...control.querySelectorAll(':not(svg, svg *)')].filter(node => node.checkVisibility()
    && [...node.childNodes].some(child => child.nodeType === Node.TEXT_NODE && child.data.trim()));
  return Math.min(...[control, ...words].map(contrast));
};
  const words = [...root.querySelectorAll(':not(svg, svg *, style)')].filter(node => node.checkVisibility()
    && !node.closest(':disabled, [data-dead]') && [...node.childNodes].some(c => c.nodeType === 3 && c.data.trim()));
  const poor = words.filter(node => contrast(node) < 4.5 || parseFloat(getComputedStyle(node).fontSize) < 12);
  return [...new Set(poor.map(node => `${node.tagName}.${node.className} ${node.textContent.slice(0, 40)}`))];
}
