//! Places for tuned pipes: the channel that each listens to, and the messages it gets.

use crate::platform::Platform;
use alloc::vec::Vec;
use diapason_abi::Errno;
use diapason_abi::Nanos;
use diapason_abi::pipe::RECORD_BYTES;
use diapason_can::exchange::{OUTSIDE, Phase, ReceivedFrame};
use diapason_contract::tuned::{RECORDS, names};
use diapason_pipe::Writer;
use diapason_pipe::meter::Meter;
use diapason_pipe::size::Bucket;

// Rings are as large as descriptions make them.
const _: () = assert!(size_of::<ReceivedFrame>() <= RECORD_BYTES);

/// The fate of a place.
#[derive(Clone, Copy)]
pub enum PlaceOrder {
    /// The place listens to a channel, by this contract.
    Listen {
        place: usize,
        channel: u8,
        /// The contract of the arrivals.
        contract: Bucket,
    },
    /// The place writes to a channel.
    Write { place: usize, channel: u8 },
    /// The place listens and writes no more.
    Leave { place: usize },
}

struct Place {
    outlet: Writer<'static, ReceivedFrame, RECORDS>,
    listens: Option<Listener>,
}

/// To whom it listens.
struct Listener {
    channel: usize,
    meter: Meter,
    /// The state of the channel that the listener was told.
    told: Option<Phase>,
}

/// The places of the endpoint.
pub(crate) struct Places(Vec<Place>);

/// Places with something new: bit n stands for place n.
pub type Fresh = u32;

impl Places {
    /// So many, none of them listening, and what is given for each.
    pub fn new(
        platform: &impl Platform,
        count: usize,
    ) -> Result<(Places, Vec<&'static str>), Errno> {
        let (mut places, mut bells) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for number in 0..count {
            let names = names(number).ok_or(Errno::Absent)?;
            places.push(Place { outlet: platform.writer(names.ring)?, listens: None });
            bells.push(names.ready);
        }
        Ok((Places(places), bells))
    }

    /// Changes the channel of one place, or leaves it without one.
    pub fn heed(&mut self, order: &PlaceOrder) {
        match *order {
            PlaceOrder::Listen { place, channel, contract } => {
                let Some(place) = self.0.get_mut(place) else { return };
                let channel = usize::from(channel);
                let before = place.listens.take().filter(|before| before.channel == channel);
                let told = before.and_then(|before| before.told);
                place.listens = Some(Listener { channel, meter: Meter::new(contract), told });
            }
            PlaceOrder::Leave { place } => {
                if let Some(place) = self.0.get_mut(place) {
                    place.listens = None;
                }
            }
            PlaceOrder::Write { .. } => {}
        }
    }

    /// Returns whether anybody listens to this channel.
    pub fn listen_to(&self, channel: usize) -> bool {
        self.0.iter().flat_map(|place| &place.listens).any(|listens| listens.channel == channel)
    }

    /// Takes in a frame of a channel that came at `time` by the clock of the interface.
    pub fn push(&mut self, channel: usize, time: Nanos, arrival: &ReceivedFrame) -> Fresh {
        let mut fresh = 0;
        for (number, place) in self.0.iter_mut().enumerate() {
            let Some(listens) = place.listens.as_mut().filter(|it| it.channel == channel) else {
                continue;
            };
            let mut arrival = ReceivedFrame { flags: arrival.flags & !OUTSIDE, ..*arrival };
            if !listens.meter.admits(time) {
                arrival.flags |= OUTSIDE;
            }
            // A full ring counts what it drops; its reader sees that.
            let _ = place.outlet.push(&arrival);
            fresh |= 1 << number;
        }
        fresh
    }

    /// Notes that a channel was opened: the interface's clock may have restarted.
    pub fn restart(&mut self, channel: usize) {
        let all = self.0.iter_mut().flat_map(|place| &mut place.listens);
        all.filter(|it| it.channel == channel).for_each(|it| it.meter.restart());
    }

    /// Returns where a channel is; its listener is told if it does not know.
    pub fn tell(&mut self, channel: usize, phase: Phase) -> Fresh {
        let mut fresh = 0;
        for (number, place) in self.0.iter_mut().enumerate() {
            let Some(listens) = place.listens.as_mut().filter(|it| it.channel == channel) else {
                continue;
            };
            // News that find no room are told when there is some.
            if listens.told != Some(phase) && place.outlet.push(&ReceivedFrame::news(phase)).is_ok()
            {
                listens.told = Some(phase);
                fresh |= 1 << number;
            }
        }
        fresh
    }
}
