//! What a description declares, item by item, with the place of everything a later stage may
//! complain about. Values are in range already; names are not resolved yet.

use crate::source::{At, Span};
use crate::system::{Restart, SemaphoreKind};

/// The whole description.
#[derive(Debug)]
pub(crate) struct Declared {
    pub name: String,
    pub memory: At<u64>,
    pub processes: Vec<DeclaredProcess>,
    pub semaphores: Vec<Named<SemaphoreKind>>,
    pub conditions: Vec<Named<()>>,
    pub mailboxes: Vec<Named<u16>>,
    /// Bytes.
    pub segments: Vec<Named<u64>>,
    pub devices: Vec<Named<DeclaredDevice>>,
    /// The places of the lists' headers, for what is wrong with a list as a whole.
    pub top: Span,
}

/// Something shared by name.
#[derive(Debug)]
pub(crate) struct Named<T> {
    pub name: At<String>,
    pub what: T,
}

/// `[[device]]`.
#[derive(Debug)]
pub(crate) struct DeclaredDevice {
    pub address: At<u64>,
    pub size: u64,
    pub irq: Option<At<u16>>,
    pub level: bool,
}

/// `[[process]]`.
#[derive(Debug)]
pub(crate) struct DeclaredProcess {
    pub name: At<String>,
    pub program: At<String>,
    pub priority: u8,
    pub heap: u64,
    pub stack: u64,
    pub threads: u16,
    pub semaphores: u16,
    pub conditions: u16,
    pub events: u16,
    pub uses: Vec<At<String>>,
    pub starts: Vec<At<String>>,
    pub supervisor: Supervision,
    pub restart: At<Restart>,
    pub backoff_ns: u64,
    pub start_at_boot: At<bool>,
    pub arguments: [u64; 4],
}

/// Who gets the fault reports.
#[derive(Debug)]
pub(crate) enum Supervision {
    /// Nothing said: the process named `supervisor`, if there is one.
    Default,
    /// `"none"`, written here.
    Nobody(Span),
    /// This process.
    By(At<String>),
}
