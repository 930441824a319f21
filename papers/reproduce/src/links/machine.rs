//! Runs a list of hosts and hands on what their programs say.

use super::hosts::find;
use diapason::Failure;
use diapason::console::Line;
use diapason::metal::Built;
use diapason::session::Session;
use diapason::simulate::{Hearing, Joined, Joints, Seat, together};
use diapason_plan::NetworkPlan;
use diapason_system::{Description, Hosts, RunOptions, parse_any};
use std::cell::RefCell;

/// Runs a list for some time. `hear` is told each line of the programs: its host and its words.
///
/// # Errors
/// If the list is wrong, or a host breaks a promise: then nothing it measured can be trusted.
pub fn run(
    list: &str,
    built: &Built,
    horizon_ns: u64,
    mut hear: impl FnMut(usize, &[&str]),
) -> Result<(), Failure> {
    let mut hosts = match parse_any("bridging.toml", list, find) {
        Ok(Description::Several(hosts)) => hosts,
        Ok(_) => return Err(Failure::Ours("a list of hosts is one host".into())),
        Err(wrong) => return Err(Failure::Ours(wrong.to_string())),
    };
    NetworkPlan::of(&hosts).instruct(&mut hosts);
    let options = RunOptions { horizon_ns, record_bytes: 0, watch: false };
    let session = |system| Session::assemble(system, built.clone(), options);
    let drifts = hosts.hosts.iter().map(|host| host.drift_ppm).collect();
    let Hosts { hosts, cables, ethernet, switches, .. } = hosts;
    let joints = Joints { cables, ethernet, switches, drifts, ..Joints::default() };
    let sessions = hosts.into_iter().map(|host| session(host.system));
    let sessions = sessions.collect::<Result<Vec<Session>, Failure>>()?;
    let hear = RefCell::new(&mut hear);
    let listener = |host| {
        let hear = &hear;
        Hearing(move |line: &Line| {
            if let Line::Log { text, .. } = line {
                let words: Vec<&str> = text.split_whitespace().collect();
                (hear.borrow_mut())(host, &words);
            }
        })
    };
    let seats = sessions.iter().enumerate();
    let seats = seats.map(|(host, session)| Seat::new(session, listener(host)));
    let ran = together(seats.collect(), &Joined::By(Box::new(joints)))?;
    for (session, host) in sessions.iter().zip(&ran) {
        let name = &session.system.name;
        let found = session.judge(&host.run).findings();
        if !found.is_empty() {
            return Err(Failure::Ours(format!("{name}: {}", found.join("; "))));
        }
    }
    Ok(())
}

/// Returns the numbers behind the first word, if that is `word`.
pub fn numbers(words: &[&str], word: &str) -> Option<Vec<u64>> {
    let (first, rest) = words.split_first()?;
    (*first == word).then(|| rest.iter().filter_map(|word| word.parse().ok()).collect())
}
