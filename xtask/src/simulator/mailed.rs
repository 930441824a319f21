//! The same programs send to mailboxes on one host, to another host, and to one two cables away.
//! While cables are pulled, every message is delivered or lost at a place that has a name. A
//! program that sends ten times as often as its flow says harms its own flow alone.
//!
//! `DIAPASON_PULLS` is how many runs with a cable that is pulled there are.

use super::pulled::{LENGTH, books, described, restored, runs, simulated};
use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use diapason_random::Random;
use serde_json::Value;
use std::fs;
use std::process::Output;

const ALONE: &str = "examples/mail-alone.toml";
const TWO: &str = "examples/mail.toml";
const THREE: &str = "examples/mail-three.toml";
const BOTH: &str = "examples/mail-both.toml";
const MANY: &str = "examples/mail-many.toml";
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
/// The fewest questions of a program that asks every 1 ms in 3.5 s.
const FLOOD_SENT: u64 = 3_000;
/// Messages that the mailbox `questions` of the receiver holds.
const HELD: u64 = 8;
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
    starved(workspace)?;
    routerless(workspace)?;
    shared(workspace)?;
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
/// server holds its messages to the contract of the flow. The books have every message.
fn flooded(workspace: &Workspace) -> Result<(), String> {
    let change = ("arguments = [10000, 200]", "arguments = [1000, 0]");
    let result = altered(workspace, TWO, change)?;
    books(&result)?;
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
    // It asks from 0.5 s on, as often as its argument says.
    let (sent, full) =
        (number(&result, "questions", "sent")?, lost(&result, "questions", "left, `questions`"));
    match sent >= FLOOD_SENT && full > sent / 2 {
        true => Ok(()),
        false => Err(format!("the books miss the flood: {}", result["flows"])),
    }
}

/// Checks that the books have every message to a program that takes no more of them: those that
/// its mailbox refused, and those that stay in it.
fn starved(workspace: &Workspace) -> Result<(), String> {
    let result = crashed(workspace, "answerer")?;
    let (full, held) = (
        lost(&result, "questions", "right, `questions`"),
        lost(&result, "questions", "right, in `questions`"),
    );
    println!("a receiver that ended: {full} messages found its mailbox full, {held} stay in it");
    match full > 0 && held == HELD {
        true => Ok(()),
        false => Err(format!("the books miss what the mailbox refused: {}", result["flows"])),
    }
}

/// Checks that the books name every message to and from a host whose router ended.
fn routerless(workspace: &Workspace) -> Result<(), String> {
    let result = crashed(workspace, "mail")?;
    let [asked, answered] = FLOWS.map(|name| lost(&result, name, ""));
    println!("a router that ended: {asked} questions and {answered} answers are lost");
    match asked > 0 {
        true => Ok(()),
        false => Err(format!("a router that ended lost nothing: {}", result["flows"])),
    }
}

/// Simulates two hosts of which a process of the second one crashes. Every question must be
/// delivered, or lost at a place with a name.
fn crashed(workspace: &Workspace, process: &str) -> Result<Value, String> {
    let before = "[[process]]\nname = \"answerer\"";
    let fault = format!("at = \"1200ms\"\nwhat = \"crash\"\nprocess = \"{process}\"");
    let result = altered(workspace, TWO, (before, &format!("[[fault]]\n{fault}\n\n{before}")))?;
    books(&result)?;
    let all = [number(&result, "questions", "sent")?, number(&result, "questions", "under_way")?];
    match all == [ASKED, 0] {
        true => Ok(result),
        false => Err(format!("`{process}` ended: questions are missing: {}", result["flows"])),
    }
}

/// Returns a number in the books of a flow.
fn number(result: &Value, name: &str, key: &str) -> Result<u64, String> {
    let flows = result["flows"].as_array().ok_or("no flows")?;
    let flow = flows.iter().find(|flow| flow["flow"] == name).ok_or(format!("no flow {name}"))?;
    flow["books"][key].as_u64().ok_or(format!("no {key}: {flow:#}"))
}

/// Returns how many messages of a flow are lost at places whose name contains this.
fn lost(result: &Value, name: &str, place: &str) -> u64 {
    let flows = result["flows"].as_array().into_iter().flatten();
    let places = flows.filter(|flow| flow["flow"] == name).map(|flow| &flow["books"]["lost"]);
    let all = places.filter_map(Value::as_array).flatten();
    let here = all.filter(|it| it["where"].as_str().is_some_and(|it| it.contains(place)));
    here.filter_map(|it| it["messages"].as_u64()).sum()
}

/// Simulates a list with one text for another in the files of its hosts, and follows its messages.
/// The run must break a promise.
fn altered(workspace: &Workspace, list: &str, (from, to): (&str, &str)) -> Result<Value, String> {
    let wrong = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let folder = std::env::temp_dir().join(format!("diapason-mail-{}", std::process::id()));
    fs::create_dir_all(folder.join("mail")).map_err(|error| wrong("create a folder", error))?;
    let examples = workspace.root().join("examples");
    let read = |file: &str| fs::read_to_string(examples.join(file));
    let list = list.trim_start_matches("examples/");
    let text = read(list).map_err(|error| wrong(list, error))?;
    let files = text.lines().filter_map(|line| line.strip_prefix("system = \"")?.strip_suffix('"'));
    let mut is_changed = false;
    for file in files.chain([list]) {
        let text = read(file).map_err(|error| wrong(file, error))?;
        is_changed |= text.contains(from);
        fs::write(folder.join(file), text.replace(from, to)).map_err(|error| wrong(file, error))?;
    }
    let list = folder.join(list);
    let arguments = ["sim", &list.to_string_lossy(), "--for", LENGTH, "--stages", "--json"];
    let result = described(workspace, &arguments, &[1]);
    let _ = fs::remove_dir_all(&folder);
    result.and_then(|it| is_changed.then_some(it).ok_or(format!("no file has {from}")))
}

/// Checks that of two senders to one mailbox the one that floods harms its own flow alone.
fn shared(workspace: &Workspace) -> Result<(), String> {
    whole_of_many(workspace)?;
    kept(workspace)?;
    let change = ("arguments = [10000, 200]", "arguments = [1000, 0]");
    let result = altered(workspace, MANY, change)?;
    books(&result)?;
    for name in ["right-asks", "receipts"] {
        let [sent, delivered] = ["sent", "delivered"].map(|key| number(&result, name, key));
        if (sent?, delivered?) != (ASKED, ASKED) {
            return Err(format!("`{name}` lost messages to a flood: {}", result["flows"]));
        }
    }
    let flows = result["flows"].as_array().ok_or("no flows")?;
    if let Some(late) = flows.iter().find(|it| it["longest_ns"].as_u64() > it["bound_ns"].as_u64())
    {
        return Err(format!("a flow is late beside a flood: {late}"));
    }
    let sent = number(&result, "left-asks", "sent")?;
    let passed = number(&result, "left-asks", "delivered")?;
    println!("beside a flood of {sent}, of which {passed} passed, the other sender lost nothing");
    match sent >= FLOOD_SENT && (FLOOD_LEAST..=FLOOD_MOST).contains(&passed) {
        true => Ok(()),
        false => Err(format!("the flood was not held: {}", result["flows"])),
    }
}

/// Checks that a cable that is back, with all that it kept, takes no room of the other sender in
/// the mailbox of both.
fn kept(workspace: &Workspace) -> Result<(), String> {
    let result = simulated(workspace, MANY, "900ms unplug far 300ms", &[1])?;
    books(&result)?;
    let dropped = lost(&result, "right-asks", "right:mail, too many");
    let full = lost(&result, "right-asks", "`questions`");
    println!("a cable was lost: its router dropped {dropped} messages of its flow");
    match dropped > 0 && full == 0 && lost(&result, "left-asks", "") == 0 {
        true => Ok(()),
        false => Err(format!("a cable that is back fills the mailbox: {}", result["flows"])),
    }
}

/// Checks that two senders to one mailbox lose nothing, and that the program behind the mailbox
/// measures each.
fn whole_of_many(workspace: &Workspace) -> Result<(), String> {
    let result = described(workspace, &["sim", MANY, "--for", LENGTH, "--json"], &[0])?;
    let hosts = result["hosts"].as_array().ok_or("no hosts")?;
    let rows = hosts.iter().filter_map(|host| host["chains"].as_array()).flatten();
    let ends: Vec<_> = rows.map(|it| [&it["messages"], &it["lost"]].map(Value::as_u64)).collect();
    match ends == [[Some(ASKED), Some(0)]; 4] {
        true => Ok(()),
        false => Err(format!("messages of two senders are missing: {ends:?}")),
    }
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
    let result = simulated(workspace, list, &fault, &[1]).map_err(wrong)?;
    books(&result).map_err(wrong)?;
    let mut all = 0;
    for (flow, (sent, unsent, came, missing)) in FLOWS.into_iter().zip(ends) {
        let (posted, delivered) =
            (count(&format!("POSTED {flow} "))?, count(&format!("DELIVERED {flow} "))?);
        let ([posted, dropped, _], [delivered, full, gaps, _, early]) =
            (&posted[..], &delivered[..])
        else {
            return Err(wrong(format!("strange counts: {said}")));
        };
        let is_whole = sent == posted + dropped
            && came == *delivered
            // A message that was dropped has a number, too.
            && sent == delivered + full + gaps + early
            // So has one that found the mailbox of its sender full.
            && sent + unsent == came + missing;
        if !is_whole {
            return Err(wrong(format!("messages to `{flow}` are missing: {said}")));
        }
        // The books follow messages from outside. The programs count for themselves.
        let known = [
            number(&result, flow, "sent")?,
            number(&result, flow, "delivered")?,
            lost(&result, flow, ""),
        ];
        if known != [sent + unsent, came, sent + unsent - came] {
            return Err(wrong(format!("the books have {known:?}: {said}")));
        }
        let far = if flow == FLOWS[0] { "right" } else { "left" };
        let refused = lost(&result, flow, &format!("at {far}, `"));
        if refused != *full {
            return Err(wrong(format!("{refused} in the books found a mailbox full: {said}")));
        }
        all += sent - came;
    }
    restored(&result, true).map_err(wrong)?;
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
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", list, "--for", LENGTH];
    let output = command(workspace, &arguments).args(more).output();
    let Output { status, stdout, stderr } = output.map_err(|error| error.to_string())?;
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    match status.code() == Some(code) {
        true => Ok(said),
        false => Err(format!("it ended with {:?}:\n{said}", status.code())),
    }
}
