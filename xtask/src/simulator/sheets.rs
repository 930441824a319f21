//! The trace that opens in Perfetto: what its importer would drop or draw wrongly is not in it, and
//! what the run did is. The numbers of fields here are those of Perfetto's own description of the
//! format, and not those of the writer.

use super::CONCENTRATOR;
use crate::tally::command;
use diapason::Workspace;
use diapason::metal::Built;
use diapason_capture::perfetto::{WireField, fields, unpacked};
use std::collections::{BTreeMap, BTreeSet};

/// The length of the simulated run.
const LENGTH: &str = "500ms";
const LENGTH_NS: u64 = 500_000_000;
/// A trace in JSON had 7.3 MB a second; this one has a tenth.
const BYTES_MAX: usize = 365_000;
/// No VCPU of the system has more budget.
const BUDGET_MAX_NS: u64 = 1_000_000;
/// Most bytes of a batch, unpacked.
const BATCH_MAX: usize = 1 << 22;
/// Groups that must have slices.
const DRAWN: [&str; 4] = ["core 0", "threads", "interrupts", "xhci, high speed"];
/// Messages that are drawn at least, each with an arrow from its device to its reader.
const ARROWS_MIN: usize = 500;

/// Checks the trace of a run.
pub fn check(workspace: &Workspace, _: &Built) -> Result<(), String> {
    let path = workspace.target().join("tmp").join("sheet.pftrace");
    std::fs::create_dir_all(path.parent().unwrap_or(&path)).map_err(|bad| bad.to_string())?;
    let arguments = ["run", "--quiet", "--bin", "diapason", "--", "sim", CONCENTRATOR];
    let mut run = command(workspace, &arguments);
    run.args(["--for", LENGTH, "--trace"]).arg(&path);
    let output = run.output().map_err(|bad| bad.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let bytes = std::fs::read(&path).map_err(|bad| bad.to_string())?;
    std::fs::remove_file(&path).map_err(|bad| bad.to_string())?;
    if bytes.len() > BYTES_MAX {
        return Err(format!("{} bytes for {LENGTH}", bytes.len()));
    }
    let packets = unpacked(&bytes, BATCH_MAX).ok_or("the trace is no list of packets")?;
    let mut drawn = Drawn::default();
    for packet in &packets {
        drawn.packet(&Parts::of(packet)?)?;
    }
    drawn.judge()
}

/// The fields of a message.
struct Parts<'p>(Vec<(u32, WireField<'p>)>);

impl<'p> Parts<'p> {
    fn of(message: &'p [u8]) -> Result<Parts<'p>, String> {
        fields(message).map(Parts).ok_or_else(|| format!("no message: {message:02x?}"))
    }

    fn number(&self, field: u32) -> Option<u64> {
        self.0.iter().find_map(|part| match *part {
            (number, WireField::Number(value)) if number == field => Some(value),
            _ => None,
        })
    }

    fn bytes(&self, field: u32) -> Option<&'p [u8]> {
        self.0.iter().find_map(|part| match *part {
            (number, WireField::Bytes(value)) if number == field => Some(value),
            _ => None,
        })
    }

    fn inner(&self, field: u32) -> Result<Option<Parts<'p>>, String> {
        self.bytes(field).map(Parts::of).transpose()
    }

    fn text(&self, field: u32) -> Option<String> {
        Some(String::from_utf8_lossy(self.bytes(field)?).into_owned())
    }
}

/// A track or a group.
struct Track {
    name: String,
    group: Option<u64>,
    is_counter: bool,
}

/// Everything in a trace.
#[derive(Default)]
struct Drawn {
    tracks: BTreeMap<u64, Track>,
    names: BTreeSet<u64>,
    /// By track, slices in the order of the file; the last may be open.
    slices: BTreeMap<u64, Vec<(u64, Option<u64>)>>,
    /// When arrows begin and end.
    arrows: BTreeMap<u64, [Option<u64>; 2]>,
}

impl Drawn {
    fn packet(&mut self, packet: &Parts<'_>) -> Result<(), String> {
        if packet.number(10).is_none_or(|sequence| sequence == 0) {
            return Err("a packet of no sequence".into());
        }
        if let Some(interned) = packet.inner(12)? {
            let entry = interned.inner(2)?.ok_or("a name without an entry")?;
            self.names.extend(entry.number(1));
        }
        if let Some(track) = packet.inner(60)? {
            let process = track.inner(3)?;
            let name = process.map_or_else(|| track.text(2), |process| process.text(6));
            let (uuid, group) =
                (track.number(1).ok_or("a track without a number")?, track.number(5));
            let name = name.filter(|name| !name.is_empty()).ok_or("a track without a name")?;
            let is_counter = track.bytes(8).is_some();
            if self.tracks.insert(uuid, Track { name, group, is_counter }).is_some() {
                return Err(format!("track {uuid:#x} is described twice"));
            }
        }
        let at = packet.number(8);
        packet
            .inner(11)?
            .map_or(Ok(()), |event| self.event(at.ok_or("an event without a time")?, &event))
    }

    fn event(&mut self, at: u64, event: &Parts<'_>) -> Result<(), String> {
        let (kind, uuid) = (event.number(9), event.number(11).ok_or("an event without a track")?);
        let track = self.tracks.get(&uuid).ok_or_else(|| format!("no track {uuid:#x}"))?;
        if at > LENGTH_NS {
            return Err(format!("an event of `{}` at {at} ns", track.name));
        }
        for (field, end) in [(47, 0), (48, 1)] {
            if let Some(arrow) = event.number(field) {
                self.arrows.entry(arrow).or_default()[end] = Some(at);
            }
        }
        if kind != Some(4) && track.is_counter {
            return Err(format!("an event on the counter `{}`", track.name));
        }
        let slices = self.slices.entry(uuid).or_default();
        match (kind, slices.last_mut()) {
            (Some(1), Some((_, None))) => return Err(format!("`{}` begins twice", track.name)),
            (Some(1), _) => slices.push((at, None)),
            (Some(2), Some((from, end @ None))) if *from < at => *end = Some(at),
            (Some(2), _) => return Err(format!("`{}` ends out of order at {at}", track.name)),
            (Some(3), _) => {}
            (Some(4), _) if track.is_counter => {
                let budgets = track.group.and_then(|group| self.tracks.get(&group));
                let is_budget = budgets.is_some_and(|group| group.name == "budgets");
                let value = event.number(30).ok_or("a counter without a value")?;
                if is_budget && value > BUDGET_MAX_NS {
                    return Err(format!("`{}` has a budget of {value} ns", track.name));
                }
            }
            _ => return Err(format!("an event of kind {kind:?} on `{}`", track.name)),
        }
        let is_named = |number| self.names.contains(&number);
        if event.number(10).is_some_and(|number| !is_named(number)) {
            return Err("an event refers to a name that is not written before".into());
        }
        Ok(())
    }

    /// Slices of a track do not overlap, those of the two tracks of the core neither; every group
    /// has some; arrows lead forwards in time.
    fn judge(mut self) -> Result<(), String> {
        let group = |uuid: &u64| self.tracks.get(uuid).and_then(|track| track.group);
        let name = |uuid: u64| self.tracks.get(&uuid).map_or("", |track| &track.name);
        let groups: BTreeSet<&str> = self
            .slices
            .iter()
            .filter(|(_, all)| !all.is_empty())
            .filter_map(|(uuid, _)| group(uuid))
            .map(name)
            .collect();
        if let Some(empty) = DRAWN.iter().find(|group| !groups.contains(*group)) {
            return Err(format!("nothing is drawn in group {empty}: {groups:?}"));
        }
        let of_core =
            self.slices.iter().filter(|(uuid, _)| group(uuid).map(name) == Some("core 0"));
        let core: Vec<_> = of_core.flat_map(|(_, slices)| slices).copied().collect();
        self.slices.insert(u64::MAX, core);
        for (track, slices) in &mut self.slices {
            slices.sort_unstable();
            if let Some(pair) =
                slices.windows(2).find(|pair| pair[0].1.is_none_or(|end| end > pair[1].0))
            {
                return Err(format!("slices overlap in the track {track:#x}: {pair:?}"));
            }
        }
        let whole =
            self.arrows.values().filter(|ends| matches!(ends, [Some(from), Some(to)] if from < to));
        match whole.count() {
            arrows if arrows < ARROWS_MIN || arrows < self.arrows.len() => {
                Err(format!("{arrows} of {} arrows lead to a reader", self.arrows.len()))
            }
            _ => Ok(()),
        }
    }
}
