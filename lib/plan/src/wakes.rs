//! How often the VCPU of a bottom half is woken, where the distance of interrupts does not say it:
//! if a device has pipes in both directions, if several frames are under way to it, or if a third
//! program asks its server.

use crate::human;
use crate::missing::Missing;
use crate::pipes::{Plant, contract};
use diapason_analysis::server::IoSupply;
use diapason_pipe::bill::Service;

impl Plant<'_> {
    /// Checks that the VCPU of a bottom half may be woken as often as the pipes of its device need:
    /// by an interrupt and at the end of its pace, and by each ask and at the end of the rest after
    /// it. A reader that begins asks once. A program that is no end asks without a pause.
    ///
    /// The interval of the interrupts is enough for one pipe that nobody else asks for, if each
    /// message has ended before the next one is due.
    pub(crate) fn has_wakes(&self, index: usize, place: usize) -> Result<(), Missing> {
        let pipes = &self.system.pipes;
        let (usb, home) = (pipes[index].usb, self.driver(&pipes[index]).home);
        let own: Vec<usize> = (0..pipes.len()).filter(|it| pipes[*it].usb == usb).collect();
        let supply = IoSupply::inherited(&self.core.system, place);
        let (Some(asked), Some(supply)) = (home.asked, supply) else { return Ok(()) };
        let is_pestered = self.is_pestered(asked, &own);
        if own.len() < 2 && !is_pestered && !self.asks_apart(index) {
            return Ok(());
        }
        let period = supply.period();
        let paces = period.0.div_ceil(home.pace.0.max(1));
        let messages = |number: &usize| {
            let contract = contract(&pipes[*number]);
            // No message takes longer than this to its interrupt, or there is one in each pace.
            contract.most(period + contract.per.max(self.late(*number)))
        };
        let told = own.iter().map(messages).fold(0, u64::saturating_add);
        let written = own.iter().filter(|number| pipes[**number].is_written());
        let asked_in = |number: &usize| {
            let (contract, late) = (contract(&pipes[*number]), self.lateness(*number));
            contract.most(period + late.unwrap_or(contract.per))
        };
        let asks: u64 = written.map(asked_in).sum();
        let asks = if is_pestered { paces } else { asks + 1 };
        let needed = 2 * (told.min(paces) + asks);
        let allowed = self.core.system.ios[place].wakeups(period);
        if needed <= allowed {
            return Ok(());
        }
        let name = &self.system.vcpus[usize::from(self.core.ios[place])].name;
        let what = format!(
            "`{name}` may be woken {needed} times in {}, and its `interval` says {allowed}: {}",
            human(period.0),
            match own.len() {
                _ if is_pestered => "a third program asks, too",
                1 => "by its writer, and when frames have gone",
                _ => "messages go both ways",
            },
        );
        let micros = period.0 / needed / 1_000;
        Err((what, format!("write at most `interval = \"{micros}us\"`")))
    }

    /// Returns whether a program uses the semaphore by which the ends of these pipes ask their
    /// server, and is none of them.
    fn is_pestered(&self, asked: &str, own: &[usize]) -> bool {
        let is_part = |process: u16| {
            own.iter()
                .map(|number| &self.system.pipes[*number])
                .any(|pipe| pipe.server == process || pipe.ends_at(process))
        };
        let mut processes = (0u16..).zip(&self.system.processes);
        processes.any(|(number, it)| !is_part(number) && it.uses.iter().any(|name| name == asked))
    }
}
