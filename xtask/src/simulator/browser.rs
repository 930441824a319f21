//! The page about a system in a real browser, where Chromium is installed: on a desktop, and 400
//! pixels wide. A frame around the page measures what a script inside it could not change.

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
/// picture has a name, pictures and cells can be read, and the order of focus is that of the page.
const SCRIPT: &str = r"
const found = [];
for (const frame of document.querySelectorAll('iframe')) {
  const page = frame.contentDocument, root = page.documentElement, wide = frame.width;
  const say = what => found.push(wide + ' px: ' + what);
  if (root.scrollWidth > root.clientWidth) say('the page is ' + root.scrollWidth + ' wide');
  const movable = [...page.querySelectorAll('.wide')];
  for (const part of page.querySelectorAll('section, header, p, h1, h2, .tiles div')) {
    if (part.getBoundingClientRect().right > root.clientWidth) say(part.tagName + ' is cut off');
  }
  for (const picture of page.querySelectorAll('svg')) {
    const hidden = picture.getAttribute('aria-hidden') == 'true';
    if (!hidden && !picture.getAttribute('aria-label')) say('a picture has no name');
    if (!hidden && picture.getBoundingClientRect().width < 700) say('a picture is too small');
  }
  let last = null;
  for (const part of movable) {
    part.focus();
    if (page.activeElement != part) say('a part cannot be moved with keys');
    if (part.tabIndex != 0) say('a part has its own place in the order');
    if (last && !(last.compareDocumentPosition(part) & 4)) say('the order is not that of the page');
    last = part;
  }
  if (movable.length < 4) say('only ' + movable.length + ' parts can be moved');
  if (page.querySelectorAll('h1').length != 1) say('it has not one heading');
  if (root.lang != 'en') say('it has no language');
}
document.body.textContent = 'findings:' + JSON.stringify(found) + ':end';
";

/// Returns the page inside a page that looks at it.
fn around(page: &str) -> String {
    let inside = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame =
        |width| format!("<iframe width=\"{width}\" height=\"900\" srcdoc=\"{inside}\"></iframe>");
    let frames: String = WIDTHS.into_iter().map(frame).collect();
    format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><body>{frames}</body>\
         <script>onload = () => {{{SCRIPT}}}</script>"
    )
}

/// Checks a page in the browser, where it is installed.
pub fn check(workspace: &Workspace, page: &str) -> Result<(), String> {
    let path = workspace.target().join("tmp").join("frames.html");
    std::fs::write(&path, around(page)).map_err(|error| error.to_string())?;
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
