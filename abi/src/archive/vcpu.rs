//! Virtual CPUs in the archive: what the kernel schedules, with the numbers that were admitted.
//!
//! The limits stand here because three readers share them: the builder refuses a description that
//! breaks them, the kernel an archive, and the kernel again a VCPU made while the system runs.

use super::codec::{Reader, Writer};
use crate::Nanos;

/// Most VCPUs of a system at a time, those made while it runs included: a set is one `u64`.
pub const VCPUS_MAX: u16 = 64;
/// Bytes of one entry of the VCPU table.
pub const VCPU_BYTES: usize = 80;
/// Most queues by earliest deadline; the queue by period comes below them.
pub const DP_QUEUES_MAX: u8 = 7;
/// Shortest period. The longest kernel path takes a third of it on a machine of 1 GHz; a shorter
/// one would be spent on switching.
pub const PERIOD_MIN: Nanos = Nanos::from_micros(10);
/// Longest period: the product of a longer one and a share would not fit 64 bits (`lib/vcpu`).
pub const PERIOD_MAX: Nanos = Nanos::from_secs(1_000);
/// Smallest budget, and smallest grant of an I/O VCPU: less does not outlast a thread switch.
pub const BUDGET_MIN: Nanos = Nanos::from_micros(1);
/// Shortest replenishment list: the part in use and the part that waits for its time.
pub const REPLENISHMENTS_MIN: u8 = 2;
pub const REPLENISHMENTS_MAX: u8 = 8;
/// Most wake-ups of an I/O VCPU in its `interval`.
pub const WAKES_MAX: u8 = 8;
/// A whole processor, in the unit of utilizations.
pub const WHOLE_PPM: u32 = 1_000_000;

/// The kind of server that a VCPU is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum VcpuKind {
    /// A sporadic server: a budget in every period.
    Main = 0,
    /// A server for bottom halves: a share, and the period of the Main VCPU it works for.
    Io = 1,
}

/// A virtual CPU as the archive declares it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VcpuRecord {
    pub key: u64,
    /// The processes that may put threads on it, one bit each.
    pub allowed: u64,
    /// I/O: the Main VCPUs it works for, one bit each; Main: 0.
    pub serves: u64,
    /// Main: budget in ns; I/O: 0.
    pub budget: u64,
    /// Main: period in ns; I/O: 0.
    pub period: u64,
    /// I/O: the longest period, in ns, that its grants are computed from; `u64::MAX`: no limit.
    /// Main: 0.
    pub cap: u64,
    /// I/O: the time in ns in which it is woken as often as `replenishments` says; Main: 0.
    pub interval: u64,
    /// Main: the largest budget in ns that was admitted beforehand; 0: the kernel admits changes.
    pub most: u64,
    /// Main: the shortest period in ns that was admitted beforehand; 0 if `most` is.
    pub least: u64,
    /// I/O: its share of a processor, in parts per million; Main: 0.
    pub utilization_ppm: u32,
    /// The kind of server.
    pub kind: VcpuKind,
    /// True if a Main VCPU may run without budget while no other VCPU wants to run.
    pub background: bool,
    /// Main: length of its replenishment list; I/O: its wake-ups in any `interval`, at most.
    pub replenishments: u8,
    /// The VCPU's queue: 0 is the most urgent one by deadline; the one by period comes last. Of an
    /// I/O VCPU: the most urgent queue among those it serves.
    pub queue: u8,
}

impl VcpuRecord {
    /// Returns the record as the bytes of an archive.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; VCPU_BYTES] {
        let mut w = Writer::<VCPU_BYTES>::new();
        let whom = [self.key, self.allowed, self.serves];
        let times = [self.budget, self.period, self.cap, self.interval, self.most, self.least];
        for word in whom.into_iter().chain(times) {
            w.put(&word.to_le_bytes());
        }
        w.put(&self.utilization_ppm.to_le_bytes());
        w.put(&[self.kind as u8, u8::from(self.background), self.replenishments, self.queue]);
        w.bytes
    }

    pub(super) fn parse(bytes: &[u8; VCPU_BYTES]) -> Option<VcpuRecord> {
        let mut r = Reader(bytes);
        let (key, allowed, serves) = (r.u64(), r.u64(), r.u64());
        let (budget, period, cap) = (r.u64(), r.u64(), r.u64());
        let (interval, most, least, utilization_ppm) = (r.u64(), r.u64(), r.u64(), r.u32());
        let kind = match r.u8() {
            0 => VcpuKind::Main,
            1 => VcpuKind::Io,
            _ => return None,
        };
        let (background, replenishments, queue) = (r.u8() != 0, r.u8(), r.u8());
        Some(VcpuRecord {
            key,
            allowed,
            serves,
            budget,
            period,
            cap,
            interval,
            most,
            least,
            utilization_ppm,
            kind,
            background,
            replenishments,
            queue,
        })
    }

    /// Returns whether these numbers are valid. `main` has a bit for each Main VCPU.
    #[inline(never)]
    pub(super) fn is_possible(&self, dp_queues: u8, main: u64) -> bool {
        let numbers = match self.kind {
            VcpuKind::Main => self.is_possible_main(),
            VcpuKind::Io => self.is_possible_io(main),
        };
        numbers && self.queue <= dp_queues
    }

    fn is_possible_main(&self) -> bool {
        (PERIOD_MIN.0..=PERIOD_MAX.0).contains(&self.period)
            && (BUDGET_MIN.0..=self.period).contains(&self.budget)
            && (REPLENISHMENTS_MIN..=REPLENISHMENTS_MAX).contains(&self.replenishments)
            && (self.serves, self.cap, self.interval, self.utilization_ppm) == (0, 0, 0, 0)
            && self.is_possible_envelope()
    }

    /// Returns whether its first budget and period are among those admitted beforehand, if any are.
    fn is_possible_envelope(&self) -> bool {
        let none = (self.most, self.least) == (0, 0);
        let periods = (PERIOD_MIN.0..=self.period).contains(&self.least);
        none || periods && (self.budget..=self.least).contains(&self.most)
    }

    fn is_possible_io(&self, main: u64) -> bool {
        (1..=WHOLE_PPM).contains(&self.utilization_ppm)
            && self.cap >= PERIOD_MIN.0
            && self.interval > 0
            && self.serves != 0
            && self.serves & !main == 0
            && (1..=WAKES_MAX).contains(&self.replenishments)
            && (self.budget, self.period, self.most, self.least) == (0, 0, 0, 0)
            && !self.background
    }
}
