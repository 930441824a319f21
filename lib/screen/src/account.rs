//! The sums of the final tables, and the verdict that follows from them.
//!
//! The verdict is less than the host's, and never more. The host judges pipes, VCPUs and devices as
//! well, from records that a screen does not see. So "holds" is said only if the host found, when
//! it made the image, that the final tables tell everything ([`flags::WHOLE`]).

use crate::sheet::flags;
use diapason_abi::record::exit;

/// Sums over the final tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Account {
    /// Time that threads used, and time that VCPUs paid.
    pub threads_ns: u64,
    pub vcpus_ns: u64,
    pub jobs: u64,
    pub misses: u64,
    /// Broken promises that were said.
    pub findings: u64,
    /// The last record of a run came.
    pub ended: bool,
    pub time_ns: u64,
    pub idle_ns: u64,
    pub entries: u64,
}

/// The end of a run, as far as the screen can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ScreenVerdict {
    /// Every promise was kept, and there were some.
    Holds,
    /// There was no promise.
    PromisesNothing,
    Broken,
    /// Nothing was broken, and the plan does not hold.
    Unproved,
    /// Nothing was broken, and more was promised than the screen sees.
    NotJudged,
    /// The archive or the machine was refused.
    NothingStarts,
    /// The kernel or the hardware failed.
    Bug,
    /// The final tables are missing, or contradict each other.
    NoEnd,
    Books,
}

impl Account {
    /// Takes in the last record of a run.
    pub fn end(&mut self, words: &[u64]) {
        let [time_ns, idle_ns, entries, _, _, _, retired_ns, _] = *words else { return };
        (self.ended, self.time_ns, self.idle_ns) = (true, time_ns, idle_ns);
        self.entries = entries;
        self.vcpus_ns = self.vcpus_ns.saturating_add(retired_ns);
    }

    /// Returns the verdict on a run that left the machine with this status.
    #[must_use]
    pub fn verdict(&self, status: u8, known: u8) -> ScreenVerdict {
        let used = self.threads_ns.saturating_add(self.idle_ns);
        match status {
            exit::NO_ARCHIVE => ScreenVerdict::NothingStarts,
            exit::PANIC => ScreenVerdict::Bug,
            // The supervisor of another core, which ended this one without its tables.
            exit::SUPERVISOR_DIED if !self.ended => ScreenVerdict::Broken,
            _ if !self.ended => ScreenVerdict::NoEnd,
            _ if used != self.time_ns || self.vcpus_ns > self.threads_ns => ScreenVerdict::Books,
            _ if self.findings > 0 || status == exit::SUPERVISOR_DIED => ScreenVerdict::Broken,
            exit::FINISHED | exit::HALTED if known & flags::PROVED == 0 => ScreenVerdict::Unproved,
            exit::FINISHED | exit::HALTED if known & flags::WHOLE == 0 => ScreenVerdict::NotJudged,
            exit::FINISHED | exit::HALTED if self.jobs == 0 => ScreenVerdict::PromisesNothing,
            exit::FINISHED | exit::HALTED => ScreenVerdict::Holds,
            _ => ScreenVerdict::Bug,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u8 = flags::PROVED | flags::WHOLE;

    fn good() -> Account {
        let mut account = Account { threads_ns: 60, vcpus_ns: 10, jobs: 3, ..Account::default() };
        account.end(&[100, 40, 7, 0, 0, 0, 50, 0]);
        account
    }

    #[test]
    fn only_a_whole_account_of_a_proved_system_holds() {
        assert_eq!(good().verdict(exit::FINISHED, ALL), ScreenVerdict::Holds);
        assert_eq!(good().verdict(exit::HALTED, ALL), ScreenVerdict::Holds);
        assert_eq!(good().verdict(exit::FINISHED, flags::PROVED), ScreenVerdict::NotJudged);
        assert_eq!(good().verdict(exit::FINISHED, flags::WHOLE), ScreenVerdict::Unproved);
        assert_eq!(good().verdict(exit::FINISHED, 0), ScreenVerdict::Unproved);
        assert_eq!(good().verdict(exit::SUPERVISOR_DIED, ALL), ScreenVerdict::Broken);
        let early = Account::default();
        assert_eq!(early.verdict(exit::SUPERVISOR_DIED, ALL), ScreenVerdict::Broken);
        assert_eq!(early.verdict(exit::FINISHED, ALL), ScreenVerdict::NoEnd);
        assert_eq!(good().verdict(exit::PANIC, ALL), ScreenVerdict::Bug);
        assert_eq!(good().verdict(exit::NO_ARCHIVE, ALL), ScreenVerdict::NothingStarts);
        assert_eq!(good().verdict(0, ALL), ScreenVerdict::Bug);
    }

    #[test]
    fn whatever_is_wrong_in_the_account_is_seen() {
        let changed = |change: fn(&mut Account)| {
            let mut account = good();
            change(&mut account);
            account.verdict(exit::FINISHED, ALL)
        };
        assert_eq!(changed(|account| account.findings = 1), ScreenVerdict::Broken);
        assert_eq!(changed(|account| account.jobs = 0), ScreenVerdict::PromisesNothing);
        assert_eq!(changed(|account| account.ended = false), ScreenVerdict::NoEnd);
        assert_eq!(changed(|account| account.idle_ns += 1), ScreenVerdict::Books);
        assert_eq!(changed(|account| account.threads_ns -= 1), ScreenVerdict::Books);
        assert_eq!(changed(|account| account.vcpus_ns += 1), ScreenVerdict::Books);
        let mut short = Account { threads_ns: 60, jobs: 1, ..Account::default() };
        short.end(&[100, 40]);
        assert_eq!(short.verdict(exit::FINISHED, ALL), ScreenVerdict::NoEnd);
    }
}
