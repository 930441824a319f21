//! The lines in which a reader says how its pipe does.

use crate::tally::{Delays, Tally};
use diapason_abi::pipe::{PipeDelays, PipeOutside, PipeReport};
use diapason_canlib::Channel;
use diapason_rt::log;

/// How the pipe of this channel does, and how its delays are spread.
pub fn report(number: usize, tally: &mut Tally, channel: &Channel) {
    let Delays { reading, moving, whole } = tally.take_delays();
    let report = PipeReport {
        channel: number as u8,
        messages: tally.frames,
        lost: tally.faults.missing + channel.lost(),
        peak: channel.peak(),
        reading,
        moving,
        whole,
    };
    log!("{report}");
    if tally.outside > 0 {
        log!("{}", PipeOutside { channel: number as u8, messages: tally.outside });
    }
    PipeDelays::lines(number as u8, tally.spread()).for_each(|line| log!("{line}"));
}
