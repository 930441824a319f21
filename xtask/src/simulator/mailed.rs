//! The same programs send to mailboxes on one host, to another host, and to one two cables away.
//! While cables are pulled, every message is delivered or lost at a place that has a name. A
//! program that sends ten times as often as its flow says harms its own flow alone.
//!
//! `DIAPASON_PULLS` is how many runs with a cable that is pulled there are.

use super::pulled::{LENGTH, described, restored, runs, simulated};
use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use diapason_random::Random;
use std::fs;
use std::process::Output;

const ALONE: &str = "examples/mail-alone.toml";
const TWO: &str = "examples/mail.toml";
const THREE: &str = "examples/mail-three.toml";
const BOTH: &str = "examples/mail-both.toml";
/// Questions that are asked; the last one 2.5 s after the start.
const ASKED: u64 = 200;
/// The longest a program takes from when it takes a question until the answer is in its mailbox is
/// in the bill of the answers. The two bills together are the way there and back.
const FLOWS: [&str; 2] = ["questions", "answers"];
/// Messages of one every 10 ms in the 3.5 s of a run of [`LENGTH`] in which it sends, with one at
/// once and one for the jitter; and the fewest that show that it went on. A program that is not
/// held sends ten times as many.
const FLOOD_MOST: u64 = 352;
const FLOOD_LEAST: u64 = 300;
/// The fewest messages of one every 10 ms that show that a flow went on. The server reports after
/// 3 s at the latest, and the cable is lost for 1 s of them.
const LEFT_LEAST: u64 = 100;
/// Links have formed by then, and messages have passed.
const FIRST_NS: u64 = 700_000_000;
const LAST_NS: u64 = 1_700_000_000;
/// The longest time without a cable. Questions are still asked when it is back.
const AWAY_NS: u64 = 400_000_000;

/// Runs the programs on one, two and three hosts, and then pulls cables.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    for list in [ALONE, TWO, THREE] {
        whole(workspace, list).map_err(|text| format!("{list}: {text}"))?;
    }
    flooded(workspace)?;
    for (cable, alone) in [("near", "questions"), ("far", "orders")] {
        lost_beside(workspace, cable, alone)?;
    }
    let mut lost = 0;
    for seed in 0..runs() {
        lost += pulled(workspace, seed)?;
    }
    println!("{lost} messages of mailboxes were lost and named");
    Ok(())
}

/// Checks that nothing is lost, and that no answer comes later than both bills say.
fn whole(workspace: &Workspace, list: &str) -> Result<(), String> {
    let said = said(workspace, list, &[], 0)?;
    let counts = [numbers(&said, "ASKED ")?, numbers(&said, "ANSWERED ")?];
    let [[sent, unsent, came, missing, longest], [answered, lost, full]] =
        [&counts[0][..], &counts[1]]
    else {
        return Err(format!("strange counts: {counts:?}"));
    };
    let all = [sent, came, answered].map(|count| *count);
    if all != [ASKED; 3] || unsent + missing + lost + full > 0 {
        return Err(format!("messages are missing: {counts:?}"));
    }
    if list == ALONE {
        return Ok(());
    }
    let plan = described(workspace, &["plan", list, "--json"], &[0])?;
    let flows = plan["network"]["flows"].as_array().ok_or("no flows")?;
    let bounds: u64 = flows.iter().filter_map(|flow| flow["bound_ns"].as_u64()).sum();
    if *longest == 0 || *longest > bounds {
        return Err(format!("an answer came after {longest} ns; the bills have {bounds} ns"));
    }
    println!("{list}: an answer came after {longest} ns at most; the bills have {bounds} ns");
    Ok(())
}

/// Checks that a program which asks every 1 ms instead of every 10 ms harms its own flow alone: the
/// server holds its messages to the contract of the flow.
fn flooded(workspace: &Workspace) -> Result<(), String> {
    let wrong = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let folder = std::env::temp_dir().join(format!("diapason-flood-{}", std::process::id()));
    fs::create_dir_all(folder.join("mail")).map_err(|error| wrong("create a folder", error))?;
    for file in ["mail.toml", "mail/ask.toml", "mail/answer.toml"] {
        let text = fs::read_to_string(workspace.root().join("examples").join(file));
        let text = text.map_err(|error| wrong(file, error))?;
        let text = text.replace("arguments = [10000, 200]", "arguments = [1000, 0]");
        fs::write(folder.join(file), text).map_err(|error| wrong(file, error))?;
    }
    let list = folder.join("mail.toml");
    let arguments = ["sim", &list.to_string_lossy(), "--for", LENGTH, "--stages", "--json"];
    let result = described(workspace, &arguments, &[1]);
    let _ = fs::remove_dir_all(&folder);
    let result = result?;
    let flows = result["flows"].as_array().filter(|flows| flows.len() == FLOWS.len());
    for flow in flows.ok_or("no flows")? {
        let number = |name: &str| flow[name].as_u64().ok_or(format!("no `{name}`: {flow}"));
        let (messages, longest, bound) =
            (number("messages")?, number("longest_ns")?, number("bound_ns")?);
        if !(FLOOD_LEAST..=FLOOD_MOST).contains(&messages) || longest > bound {
            return Err(format!("the flood was not held: {flow}"));
        }
        println!("beside a flood: {messages} messages, {longest} of {bound} ns at most");
    }
    Ok(())
}

/// Checks that a cable that is lost for long costs messages of the flow that goes `by` it alone.
/// One server sends by two cables, and has a message every 10 ms for each.
fn lost_beside(workspace: &Workspace, cable: &str, by: &str) -> Result<(), String> {
    let fault = format!("800ms unplug {cable} 1s");
    let said = said(workspace, BOTH, &["--fault", &fault], 1)?;
    for flow in ["questions", "orders"] {
        let counts = numbers(&said, &format!("POSTED {flow} "))?;
        let [posted, dropped, _] = counts[..] else {
            return Err(format!("strange counts: {counts:?}"));
        };
        println!("`{cable}` is lost: {posted} messages to `{flow}` posted, {dropped} dropped");
        if posted < LEFT_LEAST || (dropped > 0) != (flow == by) {
            return Err(format!("{BOTH} --fault \"{fault}\": {dropped} to `{flow}` dropped"));
        }
    }
    Ok(())
}

/// Pulls a cable and returns how many messages were lost. Each of them is counted somewhere.
fn pulled(workspace: &Workspace, seed: u64) -> Result<u64, String> {
    let mut random = Random::new(seed);
    let (list, cables) = [(TWO, &["bridge"][..]), (THREE, &["near", "far"])][random.index(2)];
    let cable = cables[random.index(cables.len())];
    let at_ns = random.between(FIRST_NS, LAST_NS);
    let away = random.between(1_000_000, AWAY_NS);
    let fault = format!("{at_ns}ns unplug {cable} {away}ns");
    let wrong = |text: String| format!("sim {list} --for {LENGTH} --fault \"{fault}\": {text}");
    let said = said(workspace, list, &["--fault", &fault], 1).map_err(wrong)?;
    let count = |prefix: &str| numbers(&said, prefix).map_err(wrong);
    let (asked, answered) = (count("ASKED ")?, count("ANSWERED ")?);
    // Of each mailbox: messages that were sent to it, those that found it full, and what came.
    let ends = [
        (asked[0], asked[1], answered[0], answered[1]),
        (answered[0] - answered[2], answered[2], asked[2], asked[3]),
    ];
    let mut all = 0;
    for (flow, (sent, unsent, came, missing)) in FLOWS.into_iter().zip(ends) {
        let (posted, delivered) =
            (count(&format!("POSTED {flow} "))?, count(&format!("DELIVERED {flow} "))?);
        let ([posted, dropped, _], [delivered, full, gaps, _]) = (&posted[..], &delivered[..])
        else {
            return Err(wrong(format!("strange counts: {said}")));
        };
        let is_whole = sent == posted + dropped
            && came == *delivered
            // A message that was dropped has a number, too.
            && sent == delivered + full + gaps
            // So has one that found the mailbox of its sender full.
            && sent + unsent == came + missing;
        if !is_whole {
            return Err(wrong(format!("messages to `{flow}` are missing: {said}")));
        }
        all += sent - came;
    }
    restored(&simulated(workspace, list, &fault, &[1]).map_err(wrong)?, true).map_err(wrong)?;
    Ok(all)
}

/// Returns the numbers of the last line with this prefix.
fn numbers(said: &str, prefix: &str) -> Result<Vec<u64>, String> {
    let last = said.lines().rev().find_map(|line| Some(line.split_once(prefix)?.1));
    let last = last.ok_or_else(|| format!("nobody said `{prefix}`: {said}"))?;
    last.split_whitespace()
        .map(|word| word.parse().map_err(|_| format!("`{prefix}{last}` has no numbers")))
        .collect()
}

/// Simulates a list and returns all that was said. It must end with this exit code.
fn said(workspace: &Workspace, list: &str, more: &[&str], code: i32) -> Result<String, String> {
    let arguments = ["run", "--quiet", "-p", "diapason", "--", "sim", list, "--for", LENGTH];
    let output = command(workspace, &arguments).args(more).output();
    let Output { status, stdout, stderr } = output.map_err(|error| error.to_string())?;
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    match status.code() == Some(code) {
        true => Ok(said),
        false => Err(format!("it ended with {:?}:\n{said}", status.code())),
    }
}
