//! `diapason init`: proposes a description of what a CAN log and a DBC file show.
//!
//! The proposal has a channel for each bus that was seen, a pipe with the contract that its
//! messages kept, and a reader. Its plan holds, and each `latency` is a bound that the plan proves.
//! It is a beginning: programs of the user's take the place of the readers.

mod proposal;
mod seen;

use crate::failure::{Failure, HOLDS};
use crate::input::Input;
use crate::logs;
use crate::output::write;
use crate::plan::Plan;
use crate::signals::{read, refused};
use diapason_can::dbc::Dbc;
use diapason_contract::can::CHANNELS;
use diapason_system::System;
use proposal::{Proposal, READERS};
use seen::ChannelTraffic;
use std::path::{Path, PathBuf};

/// How many more messages at once are tried: a bus may bunch what a log has apart.
const MORE: u64 = 4;

/// The request to `init`.
#[derive(Clone, Debug, clap::Args)]
pub struct InitRequest {
    /// A log of candump, ASC or BLF, whose interfaces are `can0` to `can9`.
    #[arg(long, value_name = "FILE", required_unless_present = "dbc")]
    pub log: Option<PathBuf>,
    /// The messages of the first bus, with their cycles.
    #[arg(long, value_name = "FILE")]
    pub dbc: Option<PathBuf>,
    /// The name of the system.
    #[arg(long, default_value = "car")]
    pub name: String,
}

/// Prints a description whose plan holds.
///
/// # Errors
/// If one of the files cannot be used, or nothing holds for what they show.
pub fn init(request: &InitRequest) -> Result<u8, Failure> {
    if let Some((why, help)) = diapason_system::name_fault(&request.name) {
        return Err(Failure::Input(format!("error: {why}\nhelp: {help}")));
    }
    let dbc = match &request.dbc {
        Some(path) => {
            let text = read(Input::Dbc, path)?;
            Some(Dbc::parse(&text).map_err(|error| refused(path, &error))?)
        }
        None => None,
    };
    let mut channels = match &request.log {
        Some(path) => channels(path)?,
        None => vec![ChannelTraffic::unseen(0)],
    };
    if let (Some(dbc), Some(first)) = (&dbc, channels.first_mut()) {
        first.know(dbc);
    }
    if channels.iter().all(|channel| channel.rate == 0) {
        let text = "error: no message of the DBC file has a cycle, so nothing says how often any \
                    comes\nhelp: add `--log FILE`, a log of the bus";
        return Err(Failure::Input(text.into()));
    }
    let proposal =
        Proposal { name: &request.name, log: request.log.as_deref(), channels: &channels };
    write(&holding(&proposal)?);
    Ok(HOLDS)
}

/// Returns the channels that a log has messages of.
fn channels(path: &Path) -> Result<Vec<ChannelTraffic>, Failure> {
    let wrong = |why: &dyn std::fmt::Display| refused(path, why);
    let bytes = Input::Log.bytes(path).map_err(|error| Input::Log.refused(path, &error))?;
    let text = logs::text(bytes).map_err(|error| wrong(&error))?;
    let mut all = Vec::new();
    for number in 0..CHANNELS {
        let frames = logs::frames(number, &text).map_err(|error| wrong(&error))?;
        if !frames.is_empty() {
            all.push(ChannelTraffic::of(number, frames.into()));
        }
    }
    if all.is_empty() {
        let last = CHANNELS - 1;
        let why = format!("it has no frame of `can0` to `can{last}`\nhelp: rename its interfaces");
        return Err(wrong(&why));
    }
    Ok(all)
}

/// Returns the first proposal that holds, with the bounds that its plan proves.
fn holding(proposal: &Proposal<'_>) -> Result<String, Failure> {
    let mut last = String::new();
    for period_us in READERS {
        for more in 0..MORE {
            let text = proposal.text(period_us, more, &[]);
            let plan = planned(&text)?;
            let bounds: Option<Vec<u64>> =
                plan.pipes.iter().map(|pipe| Some(pipe.bill.as_ref().ok()?.total.0)).collect();
            if let (true, Some(bounds)) = (plan.holds(), bounds) {
                return Ok(proposal.text(period_us, more, &bounds));
            }
            last = plan.findings.first().map_or(String::new(), |found| found.plain());
        }
    }
    Err(Failure::NotAdmitted(format!(
        "{last}\n\nerror: no proposal holds for what was seen\nhelp: take fewer channels, or \
         write the description by hand"
    )))
}

fn planned(text: &str) -> Result<Plan, Failure> {
    let mut system: System =
        diapason_system::parse("the proposal", text).map_err(|bad| Failure::Ours(bad.plain()))?;
    logs::read(&mut system, Path::new(""))?;
    Ok(Plan::of(&system))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(log: &str, dbc: Option<&str>) -> Result<String, Failure> {
        let folder = std::env::temp_dir();
        let id = std::thread::current().id();
        let file = folder.join(format!("diapason-init-{}-{id:?}.log", std::process::id()));
        std::fs::write(&file, log).unwrap();
        let mut all = channels(&file)?;
        if let Some(dbc) = dbc {
            all[0].know(&Dbc::parse(dbc).unwrap());
        }
        let text = holding(&Proposal { name: "car", log: Some(&file), channels: &all });
        std::fs::remove_file(&file).unwrap();
        text
    }

    /// A log of two buses: one message every 10 ms, and 3 at once every 20 ms.
    fn log() -> String {
        let lines = (0..100).flat_map(|at| {
            let mut lines = vec![format!("({}.{:02}0000) can0 123#01\n", at / 100, at % 100)];
            if at % 2 == 0 {
                lines.extend(
                    (0..3).map(|_| format!("({}.{:02}0100) can2 700#\n", at / 100, at % 100)),
                );
            }
            lines
        });
        lines.collect()
    }

    #[test]
    fn a_proposal_says_what_was_seen_and_its_plan_holds() {
        let dbc = "BU_: E\nBO_ 291 Engine: 8 E\n S : 0|8@1+ (1,0) [0|1] \"\" E\n\
                   BO_ 1 Other: 8 E\n S : 0|8@1+ (1,0) [0|1] \"\" E\n\
                   BA_DEF_ BO_ \"GenMsgCycleTime\" INT 0 10000;\n\
                   BA_ \"GenMsgCycleTime\" BO_ 291 20;\nBA_ \"GenMsgCycleTime\" BO_ 1 5;\n";
        let text = text(&log(), Some(dbc)).unwrap_or_else(|bad| panic!("{bad}"));
        for part in [
            "channels = 3\n",
            "# can0: 100 frames in 990.000 ms, no two closer than 10.000 ms\n",
            "#   0x123 Engine: 100 times, every 10.000 ms to 10.000 ms; its cycle is 20 ms\n",
            "#   0x001 Other: not seen; its cycle is 5 ms\n",
            "rate = 310",
            "burst = 2",
            "# can2: 150 frames in 980.000 ms, no two closer than 0 ns\n",
            "rate = 168",
            "burst = 3",
            "reader = \"reader-2\"\n",
            "[usbd] ",
            "latency = \"",
        ] {
            assert!(text.contains(part), "{part}\n{text}");
        }
        assert!(diapason_system::parse("car.toml", &text).is_ok());
    }

    #[test]
    fn what_shows_nothing_is_refused() {
        let said = |log: &str| text(log, None).unwrap_err().to_string();
        assert!(said("(1.0) vcan0 123#\n").contains("it has no frame of `can0` to `can9`"));
        assert!(said("hello\n").contains("line 1"));
        // More than any bus carries.
        let full: String =
            (0..30_000).map(|at| format!("(1.{:06}) can0 123#\n", 10 * at)).collect();
        assert!(said(&full).contains("no proposal holds"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]

        #[test]
        fn the_plan_holds_for_any_bus_that_is_not_full(
            gaps in proptest::collection::vec(0u64..20_000, 2..200), channel in 0usize..10,
        ) {
            let mut at = 0;
            let lines = gaps.iter().map(|gap| {
                at += gap + 500;
                format!("({}.{:06}) can{channel} 123#0102\n", at / 1_000_000, at % 1_000_000)
            });
            let text = text(&lines.collect::<String>(), None);
            prop_assert!(text.is_ok(), "{:?}", text.map_err(|it| it.to_string()));
        }
    }
}
