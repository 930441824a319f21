//! Pages about systems in a real browser, where Chromium is installed: on a desktop, and 400
//! pixels wide. A frame around a page measures what a script inside it could not change.

use diapason::Workspace;
use std::process::{Command, Stdio};

/// The browser. `apt-get install chromium` brings it.
const BROWSER: &str = "chromium";
/// Wall seconds in which the browser must have shown the page.
const PATIENCE: &str = "60";
/// Widths at which the page is shown, in pixels.
const WIDTHS: [u32; 2] = [400, 1100];
/// The word before the findings in what the browser returns.
const FOUND: &str = "findings:";

/// Looks at every frame: nothing is wider than the window but what can be moved with keys, every
/// picture has a name, pictures and cells can be read, the order of focus is that of the page,
/// every link leads to a place of the page, and the picture of threads grows and moves.
const SCRIPT: &str = r"
const found = [];
for (const frame of document.querySelectorAll('iframe')) {
  const page = frame.contentDocument, root = page.documentElement, wide = frame.width;
  const say = what => found.push(wide + ' px: ' + what);
  if (root.scrollWidth > root.clientWidth) say('the page is ' + root.scrollWidth + ' wide');
  page.querySelectorAll('details').forEach(folded => { folded.open = true; });
  const movable = [...page.querySelectorAll('.wide')];
  for (const part of page.querySelectorAll('section, header, p, h1, h2, .tiles div')) {
    if (part.getBoundingClientRect().right > root.clientWidth) say(part.tagName + ' is cut off');
  }
  for (const picture of page.querySelectorAll('svg')) {
    const hidden = picture.getAttribute('aria-hidden') == 'true';
    if (!hidden && !picture.getAttribute('aria-label')) say('a picture has no name');
    if (!hidden && picture.getBoundingClientRect().width < 700) say('a picture is too small');
  }
  for (const link of page.querySelectorAll('a')) {
    const place = link.getAttribute('href').slice(1);
    if (!place || !page.getElementById(place)) say('a link leads nowhere: ' + place);
    if (!link.getAttribute('aria-label') && !link.textContent.trim()) say('a link has no name');
  }
  for (const plot of page.querySelectorAll('svg.plot')) {
    const box = plot.closest('.wide'), bar = box.previousElementSibling, view = () =>
      plot.getAttribute('viewBox').split(' ').map(Number);
    const [, , whole] = view();
    const press = key => box.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    bar.querySelector('[aria-label=larger]').click();
    if (Math.abs(view()[2] - whole / 2) > 1) say('the button does not enlarge');
    press('ArrowRight');
    if (!(view()[0] > whole / 4)) say('the key does not move');
    const labels = box.querySelectorAll('g.ticks text');
    if (labels.length < 3) say('a larger part has ' + labels.length + ' times');
    press('0');
    if (view()[2] != whole || view()[0] != 0) say('the key does not show all');
    const first = plot.querySelector('rect'), spot = first.getBoundingClientRect();
    first.dispatchEvent(new PointerEvent('pointermove', { bubbles: true, clientX: spot.left }));
    const words = first.querySelector('title').textContent;
    if (!bar.querySelector('output').textContent.includes(words)) say('nothing is said of a part');
  }
  if (!page.querySelector('svg.plot')) say('no picture of threads');
  let last = null;
  for (const part of movable) {
    part.focus();
    if (page.activeElement != part) say('a part cannot be moved with keys');
    if (part.tabIndex != 0) say('a part has its own place in the order');
    if (last && !(last.compareDocumentPosition(part) & 4)) say('the order is not that of the page');
    last = part;
  }
  if (movable.length < 3) say('only ' + movable.length + ' parts can be moved');
  if (page.querySelectorAll('h1').length != 1) say('it has not one heading');
  if (root.lang != 'en') say('it has no language');
}
document.body.textContent = 'findings:' + JSON.stringify(found) + ':end';
";

/// Returns the pages inside a page that looks at them.
fn around(pages: &[String]) -> String {
    let frame = |(page, width): (&String, u32)| {
        let inside = page.replace('&', "&amp;").replace('"', "&quot;");
        format!("<iframe width=\"{width}\" height=\"900\" srcdoc=\"{inside}\"></iframe>")
    };
    let frames = pages.iter().flat_map(|page| WIDTHS.map(|width| (page, width))).map(frame);
    let frames: String = frames.collect();
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body>{frames}</body>\
         <script>onload = () => {{{SCRIPT}}}</script>"
    )
}

/// Checks pages in the browser, where it is installed.
pub fn check(workspace: &Workspace, pages: &[String]) -> Result<(), String> {
    let path = workspace.target().join("tmp").join("frames.html");
    std::fs::write(&path, around(pages)).map_err(|error| error.to_string())?;
    let profile = workspace.target().join("tmp").join("browser");
    let mut browser = Command::new("timeout");
    browser.args([PATIENCE, BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu"]);
    browser.args(["--window-size=1600,1000", "--enable-logging=stderr", "--dump-dom"]);
    browser.arg(format!("--user-data-dir={}", profile.display())).arg(&path);
    let output = browser.stdin(Stdio::null()).output();
    let _ = std::fs::remove_dir_all(&profile);
    let output = output.map_err(|error| error.to_string())?;
    // `timeout` says so if there is no such program.
    if output.status.code() == Some(127) {
        println!("    no {BROWSER} to look at the page");
        return Ok(());
    }
    let (shown, said) = (text(&output.stdout), text(&output.stderr));
    let complaint = said.lines().find(|line| line.contains("CONSOLE"));
    let found = shown.split_once(FOUND).and_then(|(_, rest)| rest.split_once(":end"));
    match (found, complaint) {
        (Some(("[]", _)), None) => Ok(()),
        (Some((found, _)), _) if found != "[]" => Err(format!("in {BROWSER}: {found}")),
        (_, Some(complaint)) => Err(format!("{BROWSER} says: {complaint}")),
        (_, None) => Err(format!("{BROWSER} did not show the page: {shown}{said}")),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
