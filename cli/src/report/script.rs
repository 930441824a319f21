//! The script of the page: it makes the picture of threads larger, moves it, and says what is under
//! the pointer. It asks for nothing outside the page, and the page is complete without it.

/// Every `svg.plot` shows a part of its own width; its numbers are in nanoseconds.
pub const SCRIPT: &str = r#"
'use strict';
for (const plot of document.querySelectorAll('svg.plot')) {
  const [, , width, height] = plot.getAttribute('viewBox').split(' ').map(Number);
  const from = Number(plot.dataset.from), span = Number(plot.dataset.span);
  const place = Number(plot.getAttribute('x'));
  const box = plot.closest('.wide'), ticks = box.querySelector('g.ticks');
  const bottom = ticks.querySelector('text').getAttribute('y');
  let at = 0, size = width;
  const bar = document.createElement('div'), says = document.createElement('output');
  bar.className = 'bar';
  says.textContent = 'zoom: + and -, 0 for all; move: arrow keys, or drag';
  const time = x => from + (at + x * size) / width * span;
  const words = ns => (ns / 1e6).toFixed(span * size / width < 2e5 ? 6 : 3) + ' ms';
  const step = ns => { const power = 10 ** Math.floor(Math.log10(ns / 6));
    return [1, 2, 5, 10].map(it => it * power).find(it => it * 6.01 >= ns); };
  const draw = () => {
    size = Math.min(width, Math.max(width / 100000, size));
    at = Math.min(width - size, Math.max(0, at));
    plot.setAttribute('viewBox', `${at} 0 ${size} ${height}`);
    const shown = span * size / width, each = step(shown), first = time(0);
    const digits = Math.max(0, -Math.floor(Math.log10(each / 1e6) + 1e-9));
    const labels = [];
    for (let ns = Math.ceil(first / each) * each; ns <= first + shown; ns += each) {
      const label = document.createElementNS('http://www.w3.org/2000/svg', 'text');
      label.setAttribute('x', place + (ns - first) / shown * width);
      label.setAttribute('y', bottom);
      label.setAttribute('text-anchor', 'middle');
      label.setAttribute('class', 'small');
      label.textContent = (ns / 1e6).toFixed(digits) + ' ms';
      labels.push(label);
    }
    ticks.replaceChildren(...labels);
  };
  const zoom = (factor, x) => {
    const kept = at + x * size;
    size = Math.min(width, Math.max(width / 100000, size * factor));
    at = kept - x * size;
    draw();
  };
  const move = part => { at += part * size; draw(); };
  const all = () => { at = 0; size = width; draw(); };
  const keys = { '+': () => zoom(0.5, 0.5), '=': () => zoom(0.5, 0.5), '-': () => zoom(2, 0.5),
    '0': all, 'ArrowLeft': () => move(-0.2), 'ArrowRight': () => move(0.2) };
  const buttons = [['+', 'larger', keys['+']], ['-', 'smaller', keys['-']],
    ['<', 'earlier', keys.ArrowLeft], ['>', 'later', keys.ArrowRight], ['0', 'all of it', all]];
  for (const [text, what, act] of buttons) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    button.setAttribute('aria-label', what);
    button.onclick = act;
    bar.append(button);
  }
  bar.append(says);
  box.before(bar);
  box.addEventListener('keydown', event => {
    const zoomed = size < width || !event.key.startsWith('Arrow');
    if (keys[event.key] && zoomed && !event.ctrlKey && !event.metaKey && !event.altKey) {
      keys[event.key]();
      event.preventDefault();
    }
  });
  const part = event => { const seen = plot.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - seen.left) / seen.width)); };
  let held = null;
  plot.addEventListener('dblclick', event => zoom(event.shiftKey ? 4 : 0.25, part(event)));
  plot.addEventListener('pointerdown', event => { held = part(event); });
  addEventListener('pointerup', () => { held = null; });
  plot.addEventListener('pointermove', event => {
    const now = part(event);
    if (held !== null && size < width) { move(held - now); held = now; }
    const title = event.target.querySelector && event.target.querySelector('title');
    says.textContent = words(time(now)) + (title ? ': ' + title.textContent : '');
  });
}
"#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_cannot_end_early_and_asks_for_nothing() {
        for word in ["</", "<!--", "fetch", "import", "XMLHttp", "src", "eval", "innerHTML"] {
            assert!(!SCRIPT.contains(word), "{word}");
        }
    }
}
