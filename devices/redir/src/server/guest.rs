//! One guest at the barrier: its clock, and the connections of its devices.

use super::clock::{Answer, Clock, Stop};
use super::link::Link;
use super::wires::AdapterFrame;
use super::{EXCHANGES_MAX, RunError, clock_socket, device_socket};
use crate::redirected::Redirected;
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

/// A guest that has not come yet: sockets at which its QEMU will connect, and its devices.
pub(super) struct Seat<D: ?Sized> {
    clock: UnixListener,
    listeners: Vec<UnixListener>,
    devices: Vec<Redirected<D>>,
}

impl<D: UsbDevice + ?Sized> Seat<D> {
    /// Opens the sockets of the guest with this number.
    pub fn open(folder: &Path, guest: usize, devices: Vec<Box<D>>) -> Result<Seat<D>, RunError> {
        let listen = |name: String| {
            let listener = UnixListener::bind(folder.join(name))
                .map_err(|error| RunError::Io("open a socket", error))?;
            listener.set_nonblocking(true).map_err(|e| RunError::Io("open a socket", e))?;
            Ok(listener)
        };
        let redirect = |(index, device)| {
            Redirected::new(device).map_err(|trouble| RunError::Device(index, Nanos::ZERO, trouble))
        };
        let sockets = (0..devices.len()).map(|index| listen(device_socket(guest, index)));
        Ok(Seat {
            clock: listen(clock_socket(guest))?,
            listeners: sockets.collect::<Result<_, _>>()?,
            devices: devices.into_iter().enumerate().map(redirect).collect::<Result<_, _>>()?,
        })
    }

    /// Returns the number of devices.
    pub fn devices(&self) -> usize {
        self.devices.len()
    }

    /// Leaves the devices out, to be plugged in later.
    pub fn unplug(&mut self) {
        self.devices.iter_mut().for_each(Redirected::unplug);
    }

    /// Accepts the connections of the guest's QEMU.
    pub fn accept(self, patience: Duration) -> Result<Guest<D>, RunError> {
        let clock = Clock::accept(&self.clock, patience)?;
        let links = self.listeners.iter().map(|listener| Link::accept(listener, patience));
        let links = links.collect::<Result<_, _>>()?;
        Ok(Guest { clock: Some(clock), links, devices: self.devices, sent: Vec::new() })
    }
}

/// A guest whose QEMU runs, or has ended.
pub(super) struct Guest<D: ?Sized> {
    /// `None` once QEMU has ended.
    clock: Option<Clock>,
    links: Vec<Link>,
    pub devices: Vec<Redirected<D>>,
    /// Frames of Ethernet that it sent since they were taken.
    pub sent: Vec<AdapterFrame>,
}

impl<D: UsbDevice + ?Sized> Guest<D> {
    /// Returns whether QEMU has not ended.
    pub fn is_there(&self) -> bool {
        self.clock.is_some()
    }

    /// Waits until the guest stands still; `None` if QEMU has ended, now or before.
    pub fn wait(&mut self, expected: Nanos) -> Result<Option<Stop>, RunError> {
        let Some(clock) = &mut self.clock else { return Ok(None) };
        let Some((stop, sent)) = clock.wait(expected)? else {
            self.clock = None;
            return Ok(None);
        };
        self.sent.extend(sent);
        Ok(Some(stop))
    }

    /// Answers the clock. If QEMU has ended meanwhile, the next [`Guest::wait`] says so.
    pub fn answer(&mut self, answer: &Answer) -> Result<(), RunError> {
        self.clock.as_mut().map_or(Ok(()), |clock| clock.answer(answer))
    }

    /// Exchanges packets at one time until nobody has anything left to say, and returns how often.
    pub fn exchange(&mut self, now: Nanos) -> Result<u64, RunError> {
        for count in 1..=EXCHANGES_MAX {
            if !self.exchange_once(now)? {
                return Ok(u64::from(count));
            }
            self.answer(&Answer::Again)?;
            if self.wait(now)?.map(|stop| stop.now) != Some(now) {
                // It ended, or was stopped: the next wait says so.
                return Ok(u64::from(count));
            }
        }
        Err(RunError::Endless(now))
    }

    /// Takes in what QEMU has sent, and sends what one device has to say. Returns whether anything
    /// moved that QEMU may have an answer to. It serves one device at a time, so that QEMU takes
    /// their packets in an order that does not depend on how fast it reads.
    fn exchange_once(&mut self, now: Nanos) -> Result<bool, RunError> {
        let (mut moved, mut sent) = (false, false);
        for (index, (device, link)) in self.devices.iter_mut().zip(&mut self.links).enumerate() {
            moved |= link.read(device).map_err(|trouble| trouble.at(index, now))?;
        }
        advance(&mut [&mut self.devices], now);
        for (device, link) in self.devices.iter_mut().zip(&mut self.links) {
            if !sent && device.is_greeted() {
                sent = link.write(device.output())?;
            }
        }
        let silent = self.devices.iter().any(|device| !device.is_greeted());
        Ok(moved || sent || silent)
    }
}

/// Brings all devices of these guests to `to`, together: they may share a bus or a cable.
pub(super) fn advance<D: UsbDevice + ?Sized>(guests: &mut [&mut Vec<Redirected<D>>], to: Nanos) {
    let next = |guests: &[&mut Vec<Redirected<D>>]| {
        let devices = guests.iter().flat_map(|devices| devices.iter());
        devices.filter_map(|device| device.next_moment(to)).min()
    };
    while let Some(at) = next(guests) {
        guests.iter_mut().flat_map(|devices| devices.iter_mut()).for_each(|it| it.advance(at));
    }
    guests.iter_mut().flat_map(|devices| devices.iter_mut()).for_each(|it| it.advance(to));
}
