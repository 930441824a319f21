//! Reports: once a second, the adapter and each of its sockets.

use crate::books::{self, ADAPTER};
use crate::clock::Timekeeper;
use diapason_contract::ethernet::{SOCKETS, SocketTerms};
use diapason_pipe::measured::{FrameEnd, FrameGauge, Measurement, Reported};
use diapason_rt::{Nanos, log};

/// The gauges of the adapter, and of its sockets in the order of their terms.
pub(crate) struct Reports {
    adapter: FrameGauge,
    sockets: [Option<FrameGauge>; SOCKETS],
}

impl Reports {
    /// Returns the reports on the adapter of this number and on its sockets.
    pub fn new(adapter: u8, all: impl Iterator<Item = SocketTerms>) -> Reports {
        let mut sockets = [None; SOCKETS];
        for (place, terms) in sockets.iter_mut().zip(all) {
            *place = Some(FrameGauge::new(FrameEnd::Server, terms.number));
        }
        Reports { adapter: FrameGauge::new(FrameEnd::Adapter, adapter), sockets }
    }

    /// Notes that the adapter got the frame of this number so long after it was chosen.
    pub fn given(&mut self, number: u64, after: Nanos) {
        self.adapter.took(number, after);
    }

    /// Returns the time of the next report.
    pub fn due(&mut self, now: Nanos) -> Nanos {
        self.adapter.due(now)
    }

    /// Reports if that is due, with the frames that were sent and refused, those of each socket
    /// that were out of step with gates, the common time if there is one, and the speed of the
    /// link.
    pub fn look(
        &mut self,
        now: Nanos,
        ([sent, foreign], out_of_step): ([u64; 2], &[u64; SOCKETS]),
        keeper: Option<&Timekeeper>,
        link: impl FnOnce() -> u32,
    ) {
        if !self.adapter.is_due(now) {
            return;
        }
        let report = self.adapter.report_mut();
        if let Some(keeper) = keeper {
            let said = Measurement::Time(keeper.report(now));
            log::measured(&Reported { at: now, said }.words());
        }
        (report.sent, report.foreign, report.link) = (sent, foreign, link());
        say(&mut self.adapter, now, ADAPTER);
        let gauges = self.sockets.iter_mut().flatten().zip(out_of_step);
        for (place, (gauge, out_of_step)) in (ADAPTER + 1..).zip(gauges) {
            gauge.report_mut().foreign = *out_of_step;
            say(gauge, now, place);
        }
    }
}

fn say(gauge: &mut FrameGauge, now: Nanos, place: usize) {
    let Some(books) = books::read(place) else { return };
    let report = gauge.report_mut();
    report.outside = books.outside;
    report.peak = u32::try_from(books.peak).unwrap_or(u32::MAX);
    gauge.say(now, [books.offered, books.passed], &books.discarded, &mut log::measured);
}
