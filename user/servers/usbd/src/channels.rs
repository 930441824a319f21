//! The CAN channels: what comes goes into their pipes, and those that should be open are opened.

use crate::policy::{BIT_RATES, REOPEN, SAMPLE_POINT};
use alloc::vec::Vec;
use diapason_abi::Nanos;
use diapason_can::{BitRate, Frame};
use diapason_rt::sync::Semaphore;
use diapason_rt::{Errno, log};
use diapason_usb::class::kvaser::{Event, Kvaser, Mode};
use diapason_usbd::{Arrival, CHANNELS, EXTENDED, LOST_BEFORE, Outlet, REMOTE, outlet};

/// Channels that a bottom half put something into: bit n stands for channel n.
pub type Fresh = u8;

/// One of them.
struct Channel {
    outlet: Outlet,
    /// When it is to be opened; never, while it is open or nobody could.
    open_at: Nanos,
    lost_before: bool,
    /// How often it was opened.
    opened: u16,
}

/// All of them.
pub struct Channels {
    all: Vec<Channel>,
    fresh: Fresh,
}

impl Channels {
    /// Closed channels, and the semaphores their clients wait for.
    pub fn new() -> Result<(Channels, [Semaphore; CHANNELS]), Errno> {
        let mut all = Vec::with_capacity(CHANNELS);
        let mut ready = [None; CHANNELS];
        for (channel, ready) in ready.iter_mut().enumerate() {
            let (outlet, semaphore) = outlet(channel)?;
            *ready = Some(semaphore);
            all.push(Channel { outlet, open_at: Nanos::FOREVER, lost_before: false, opened: 0 });
        }
        let ready = ready.map(|semaphore| semaphore.ok_or(Errno::Absent));
        let [a, b, c, d, e] = ready;
        Ok((Channels { all, fresh: 0 }, [a?, b?, c?, d?, e?]))
    }

    /// Which have something new since the last call.
    pub fn take_fresh(&mut self) -> Fresh {
        core::mem::take(&mut self.fresh)
    }

    /// The interface is gone, or of no use: nothing can be opened.
    pub fn forget(&mut self) {
        self.all.iter_mut().for_each(|channel| channel.open_at = Nanos::FOREVER);
    }

    /// When one is to be opened.
    pub fn next_wake(&self) -> Nanos {
        let times = self.all.iter().map(|channel| channel.open_at);
        times.fold(Nanos::FOREVER, Nanos::min)
    }

    /// Open what is due.
    pub fn open(&mut self, class: &mut Kvaser, now: Nanos) {
        let Some(identity) = class.identity() else { return };
        for (index, channel) in self.all.iter_mut().enumerate() {
            if now < channel.open_at {
                continue;
            }
            channel.open_at = Nanos::FOREVER;
            let rate = BIT_RATES.get(index).and_then(|hertz| BitRate::new(*hertz).ok());
            let set = rate.and_then(|r| identity.personality.parameters(r, SAMPLE_POINT).ok());
            let Some(parameters) = set else {
                log!("can{index}: the interface has no such bit rate");
                continue;
            };
            if let Err(refused) = class.open(now, index as u8, parameters, Mode::Normal) {
                log!("can{index}: {refused}");
                channel.open_at = now + REOPEN;
            }
        }
    }

    /// What an interface tells.
    pub fn hear(&mut self, event: Event, now: Nanos) {
        match event {
            Event::Frame { channel, time, frame } => self.push(channel, time, &frame, now),
            Event::Overrun { channel } => {
                if let Some(channel) = self.all.get_mut(usize::from(channel)) {
                    channel.lost_before = true;
                }
            }
            Event::Ready(identity) => {
                log!("CAN interface {} with {} channels", identity.serial, identity.channels);
                for channel in self.all.iter_mut().take(identity.channels.into()) {
                    channel.open_at = now;
                }
            }
            Event::Opened { channel } => {
                log!("can{channel}: open");
                if let Some(channel) = self.all.get_mut(usize::from(channel)) {
                    channel.opened = channel.opened.wrapping_add(1);
                }
            }
            Event::Closed { channel, cause } => {
                log!("can{channel}: closed: {cause:?}");
                if let Some(channel) = self.all.get_mut(usize::from(channel)) {
                    channel.open_at = now + REOPEN;
                }
            }
            Event::Failed { channel: Some(channel), reason } => log!("can{channel}: {reason:?}"),
            Event::Failed { channel: None, reason } => log!("CAN interface: {reason:?}"),
            Event::BusError { .. } | Event::ChipState { .. } | Event::Acknowledged { .. } => {}
        }
    }

    fn push(&mut self, number: u8, time: Nanos, frame: &Frame, now: Nanos) {
        let Some(channel) = self.all.get_mut(usize::from(number)) else { return };
        let lost = core::mem::take(&mut channel.lost_before);
        let arrival = Arrival { opened: channel.opened, ..arrival(time, frame, lost, now) };
        // A full pipe counts what it drops; its client sees that.
        let _ = channel.outlet.push(&arrival);
        self.fresh |= 1 << number;
    }
}

fn arrival(time: Nanos, frame: &Frame, lost: bool, now: Nanos) -> Arrival {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    let mut data = [0; 8];
    let bytes = frame.bytes();
    data[..bytes.len()].copy_from_slice(bytes);
    Arrival {
        time: time.0,
        taken: now.0,
        data,
        id: frame.raw_id(),
        code: frame.code(),
        flags: flag(frame.is_extended(), EXTENDED)
            | flag(frame.is_remote(), REMOTE)
            | flag(lost, LOST_BEFORE),
        opened: 0,
    }
}
