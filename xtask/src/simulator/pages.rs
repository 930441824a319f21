//! The page about a system: one file that needs no other, in which every pipe has its bill, and
//! below it the life of a message that the simulated run showed.

use super::browser;
use crate::tally::command;
use diapason::Workspace;
use diapason::describe::describe;
use diapason::metal::Built;
use diapason::plan::Plan;

/// Has pipes both ways, chains and a described bus.
const SYSTEM: &str = "examples/can-gateway.toml";
/// Several hosts or cores, each with what its page must have.
const SEVERAL: [(&str, &[&str]); 2] = [
    (
        "examples/bridge-flow.toml",
        &["id=\"part-left\"", "the bill of every flow", "from-right", FLOW_LIFE],
    ),
    ("examples/two-cores.toml", &["id=\"part-1\"", "core 1: hog", ">ready</"]),
];
/// The life of the slowest message of a flow, to which its bar leads.
const FLOW_LIFE: &str = "of from-left: given to its link at ";
const LENGTH: &str = "1500ms";
/// The marks of a page that needs other files. A link leads to a place of its own.
const OUTSIDE: [&str; 6] = [" src=", " href=\"h", "href=\"/", "url(", "@import", "<script "];
/// Elements that are opened and closed.
const ELEMENTS: [&str; 7] = ["html", "main", "section", "svg", "table", "title", "p"];

/// Checks the pages of reports.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let page = written(workspace, SYSTEM)?;
    alone(&page)?;
    drawn(workspace, &page)?;
    let mut pages = vec![page];
    for (system, parts) in SEVERAL {
        let page = written(workspace, system)?;
        alone(&page)?;
        if let Some(missing) = parts.iter().find(|part| !page.contains(**part)) {
            return Err(format!("the page of {system} has no `{missing}`"));
        }
        pages.push(page);
    }
    browser::check(workspace, &pages)
}

/// Returns the page of a system.
fn written(workspace: &Workspace, system: &str) -> Result<String, String> {
    let path = workspace.target().join("tmp").join("page.html");
    std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|bad| bad.to_string())?;
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "report", system];
    let mut run = command(workspace, &arguments);
    run.args(["--for", LENGTH, "-o"]).arg(&path);
    let output = run.output().map_err(|bad| bad.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let page = std::fs::read_to_string(&path).map_err(|bad| bad.to_string())?;
    std::fs::remove_file(&path).map_err(|bad| bad.to_string())?;
    Ok(page)
}

/// Checks that a page is whole, and one file.
fn alone(page: &str) -> Result<(), String> {
    if let Some(outside) = OUTSIDE.iter().find(|outside| page.contains(*outside)) {
        return Err(format!("the page has `{outside}`"));
    }
    for element in ELEMENTS {
        let count = |tag: &str| page.matches(tag).count();
        let opened = count(&format!("<{element}>")) + count(&format!("<{element} "));
        let closed = count(&format!("</{element}>"));
        if opened == 0 || opened != closed {
            return Err(format!("`{element}` is opened {opened} times and closed {closed} times"));
        }
    }
    Ok(())
}

/// Every item of every bill is there with its reason, and a message of each pipe.
fn drawn(workspace: &Workspace, page: &str) -> Result<(), String> {
    let system = describe(&workspace.root().join(SYSTEM)).map_err(|bad| bad.to_string())?;
    let plan = Plan::of(&system);
    let mut stages = 0;
    for (pipe, piped) in system.pipes.iter().zip(&plan.pipes) {
        let bill = piped.bill.as_ref().map_err(|why| format!("{}: {why:?}", pipe.name))?;
        for item in bill.items() {
            let hint = format!("<title>{}: ", item.what.name());
            if !page.contains(&hint) || !page.contains(&item.basis.to_string()) {
                return Err(format!("{} has no `{}`", pipe.name, item.what.name()));
            }
        }
        stages += bill.items().len();
    }
    let seen = page.matches(" (message ").count();
    let names = system.chains.iter().map(|chain| &chain.name);
    let missing = names.filter(|name| !page.contains(&format!("the bill of chain {name}"))).count();
    if stages == 0 || seen != stages || missing > 0 {
        return Err(format!("{seen} of {stages} stages of messages; {missing} chains are missing"));
    }
    Ok(())
}
