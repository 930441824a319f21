//! The actions of each thread, from the entries into the kernel core.

use diapason_abi::CallNumber;
use diapason_abi::recorder::{Entry, EntryKind};
use std::collections::BTreeMap;

/// One thread's view of a run.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub(crate) struct Life {
    /// The actions in order: the number of each call, or that it faulted. Whether somebody waited
    /// for what a call gave, so that it took the long way, is not its doing.
    pub deeds: Vec<Option<u16>>,
    /// The times at which the thread's jobs ended.
    pub ends: Vec<u64>,
}

/// Returns how often the kernel was entered from one instant to another.
pub fn entered(entries: &[Entry], from: u64, to: u64) -> i64 {
    let timed = entries.iter().filter(|e| !matches!(e.kind, EntryKind::Bytes | EntryKind::Quick));
    timed.filter(|entry| (from..=to).contains(&entry.now)).count() as i64
}

/// Returns the lives of all threads, by number.
pub fn lives(entries: &[Entry]) -> BTreeMap<u16, Life> {
    const NOBODY: u16 = u16::MAX;
    let mut lives: BTreeMap<u16, Life> = BTreeMap::new();
    let mut running = NOBODY;
    for entry in entries {
        match entry.kind {
            EntryKind::Bytes => continue,
            EntryKind::Quick | EntryKind::Syscall | EntryKind::Fault if running != NOBODY => {
                let life = lives.entry(running).or_default();
                life.deeds.push((entry.kind != EntryKind::Fault).then_some(entry.detail));
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
