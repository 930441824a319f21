//! Flows with another way, while cables are pulled at any time and hosts lose their power. Messages
//! go on within the bound that `plan` printed; no more are lost or late than it said; and they come
//! back to the cable.
//!
//! `DIAPASON_PULLS` is how many runs there are; else a few dozen.

use super::pulled::{LENGTH, books, described, restored, runs, simulated};
use diapason::Workspace;
use diapason::metal::Built;
use diapason_random::Random;
use serde_json::Value;

const LIST: &str = "examples/detour.toml";
const FIRST_NS: u64 = 900_000_000;
const LAST_NS: u64 = 1_800_000_000;
const AWAY_NS: u64 = 400_000_000;
/// The longest time for which the host behind the cable has no power, and the time in which it
/// boots.
const HANGS: u64 = 1_600_000_000;
const BOOTS_NS: u64 = 300_000_000;
/// The flow's own cable, and everything that only its other way uses.
const OWN: &str = "unplug direct";
const OTHERS: [&str; 3] = ["unplug west-hub", "unplug hub-east", "reboot hub"];
/// The exit code of a run in which nothing was broken, and nothing went over some cable.
const UNMEASURED: i32 = 5;
/// From one message to the next, and the time in which a link forms again.
const PERIOD_NS: u64 = 12_000_000;
const FORMS_NS: u64 = 200_000_000;

/// The promises of the plan.
struct Promise {
    longest_ns: u64,
    patience_ns: u64,
    /// Messages that are lost or late when the cable is lost once.
    lost: u64,
    /// Those of them on the way out, and the time after which as many are lost again while the
    /// other side takes nothing.
    outward: u64,
    again_ns: u64,
}

/// The sums over all runs, for people.
#[derive(Default)]
struct Seen {
    turned: u64,
    missing: u64,
    longest_ns: u64,
}

/// Pulls something in each of many runs.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let promise = promise(workspace)?;
    let mut seen = Seen::default();
    for seed in 0..runs() {
        let mut random = Random::new(seed);
        let is_own = random.below(4) > 0;
        let what = if is_own { OWN } else { OTHERS[random.index(OTHERS.len())] };
        let at_ns = random.between(FIRST_NS, LAST_NS);
        let away_ns = random.between(1_000_000, AWAY_NS);
        let fault = format!("{at_ns}ns {what} {away_ns}ns");
        let wrong = |text: String| format!("sim {LIST} --for {LENGTH} --fault \"{fault}\": {text}");
        let result = simulated(workspace, LIST, &fault, &[1, UNMEASURED]).map_err(wrong)?;
        judge(&result, &promise, is_own.then_some(away_ns), &mut seen).map_err(wrong)?;
    }
    let Seen { turned, missing, longest_ns } = seen;
    if turned == 0 {
        return Err("no message went another way".into());
    }
    let tried = (0..runs() / 6 + 1).map(|seed| hangs(workspace, &promise, seed));
    let tried = tried.collect::<Result<Vec<u64>, String>>()?.into_iter().max().unwrap_or_default();
    println!("at most {tried} messages were lost in a cable whose other side took nothing");
    println!(
        "{turned} messages went another way, in {longest_ns} ns at most ({} ns were promised); \
         {missing} were lost or late",
        promise.longest_ns
    );
    Ok(())
}

/// The host behind the cable has no power for long, and the cable stays up: the other end sees what
/// it sees of a USB server that hangs. Returns how many messages the cable cost.
fn hangs(workspace: &Workspace, promise: &Promise, seed: u64) -> Result<u64, String> {
    let mut random = Random::new(!seed);
    let (at_ns, away_ns) = (random.between(FIRST_NS, 2 * FIRST_NS), random.between(AWAY_NS, HANGS));
    let fault = format!("{at_ns}ns reboot east {away_ns}ns");
    let wrong = |text: String| format!("sim {LIST} --for {LENGTH} --fault \"{fault}\": {text}");
    let result = simulated(workspace, LIST, &fault, &[1, UNMEASURED]).map_err(wrong)?;
    books(&result).map_err(wrong)?;
    let places = result["flows"][0]["books"]["lost"].as_array().ok_or("no books")?;
    let of_cable = |it: &&Value| {
        let words = it["where"].as_str().unwrap_or_default();
        ["at west, before direct", "in direct, from west"].iter().any(|at| words.starts_with(at))
    };
    let lost = places.iter().filter(of_cable).filter_map(|it| it["messages"].as_u64()).sum();
    let most = promise.outward * (1 + (away_ns + BOOTS_NS).div_ceil(promise.again_ns));
    if lost == 0 || lost > most {
        return Err(wrong(format!("`direct` cost {lost} messages, at most {most}: {places:#?}")));
    }
    Ok(lost)
}

fn number(of: &Value, key: &str) -> Result<u64, String> {
    of[key].as_u64().ok_or(format!("no {key}: {of:#}"))
}

fn promise(workspace: &Workspace) -> Result<Promise, String> {
    let plan = described(workspace, &["plan", LIST, "--json"], &[0])?;
    let flow = &plan["network"]["flows"][0];
    let others = flow["otherwise"].as_array().ok_or("no other ways")?;
    let first = others.first().ok_or("no other way")?;
    let (outward, again_ns) = (number(first, "lost")?, number(first, "again_ns")?);
    let longest_ns = number(flow, "longest_ns")?;
    let mut promise = Promise { longest_ns, patience_ns: 0, lost: 0, outward, again_ns };
    for other in others {
        promise.patience_ns = promise.patience_ns.max(number(other, "patience_ns")?);
        promise.lost += number(other, "lost")?;
    }
    if others.len() != 2 || promise.longest_ns <= number(flow, "bound_ns")? {
        return Err(format!("the other ways are not in the plan: {flow:#}"));
    }
    Ok(promise)
}

/// Checks a run in which the flow's own cable was away for so long, or something else was.
fn judge(
    result: &Value,
    promise: &Promise,
    away_ns: Option<u64>,
    seen: &mut Seen,
) -> Result<(), String> {
    let (flow, end) = (&result["flows"][0], &result["hosts"][0]["chains"][0]);
    let lost = books(result)?;
    let late = number(&flow["books"], "late")?;
    let turned = number(&flow["turned"], "messages")?;
    let longest = number(&flow["turned"], "longest_ns")?.max(number(end, "longest_ns")?);
    if longest > promise.longest_ns {
        return Err(format!("a message took {longest} ns, and was not late: {flow:#}"));
    }
    let missing = lost + late;
    let most = if away_ns.is_some() { promise.lost } else { 0 };
    if missing > most || number(end, "lost")? > most {
        return Err(format!(
            "{missing} messages are lost or late; at most {most}: {flow:#} {end:#}"
        ));
    }
    if number(&flow["books"], "strange")? > 0 {
        return Err(format!("messages came twice or in pieces: {flow:#}"));
    }
    match away_ns {
        None if turned > 0 => return Err(format!("messages left a cable that works: {flow:#}")),
        // The first message may be given just before the next period.
        Some(away) if away > 2 * PERIOD_NS + promise.patience_ns && turned == 0 => {
            return Err(format!("no message went another way: {flow:#}"));
        }
        Some(away) if turned * PERIOD_NS > away + FORMS_NS => {
            return Err(format!("{turned} messages went another way: too many: {flow:#}"));
        }
        _ => {}
    }
    seen.turned += turned;
    seen.missing += missing;
    seen.longest_ns = seen.longest_ns.max(longest);
    restored(result, away_ns.is_some())
}
