//! What each thread did, from the entries into the kernel core.

use diapason_abi::CallNumber;
use diapason_abi::recorder::{Entry, EntryKind};
use std::collections::BTreeMap;

/// One thread's view of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Life {
    /// What it did, in order: kind of entry and number of the call.
    pub deeds: Vec<(EntryKind, u16)>,
    /// When each of its jobs ended.
    pub ends: Vec<u64>,
}

/// The lives of all threads, by number.
pub fn lives(entries: &[Entry]) -> BTreeMap<u16, Life> {
    const NOBODY: u16 = u16::MAX;
    let mut lives: BTreeMap<u16, Life> = BTreeMap::new();
    let mut running = NOBODY;
    for entry in entries {
        match entry.kind {
            EntryKind::Bytes => continue,
            EntryKind::Quick | EntryKind::Syscall | EntryKind::Fault if running != NOBODY => {
                let life = lives.entry(running).or_default();
                life.deeds.push((entry.kind, entry.detail));
                if entry.kind == EntryKind::Syscall && entry.detail == CallNumber::JobWait as u16 {
                    life.ends.push(entry.now);
                }
            }
            _ => {}
        }
        if entry.kind != EntryKind::Quick {
            running = entry.run;
        }
    }
    lives
}
