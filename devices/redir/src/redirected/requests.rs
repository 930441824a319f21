//! The effect of each packet from the guest.

use super::stream::Stream;
use super::transfer::Transfer;
use super::{Redirected, Trouble};
use crate::protocol::{AddressedPacket, Data, PacketStatus, RedirPacket, TransferType};
use diapason_devices::UsbDevice;
use diapason_usb::Setup;
use diapason_usb::setup::{IN, request};
use std::collections::VecDeque;

impl<D: UsbDevice + ?Sized> Redirected<D> {
    pub(super) fn handle(&mut self, message: AddressedPacket) -> Result<(), Trouble> {
        let AddressedPacket { id, packet } = message;
        match packet {
            RedirPacket::Hello(_) => {
                self.greeted = true;
                self.introduce();
            }
            RedirPacket::FilterReject => return Err(Trouble::Rejected),
            _ if !self.plugged => {}
            RedirPacket::Reset => self.reset(),
            RedirPacket::SetConfiguration(value) => self.set_configuration(id, value),
            RedirPacket::GetConfiguration => self.get_configuration(id),
            RedirPacket::SetAlternate(interface, setting) => {
                self.set_alternate(id, interface, setting)
            }
            RedirPacket::GetAlternate(interface) => self.get_alternate(id, interface),
            RedirPacket::StartIsochronous(endpoint, _, _) => {
                let status = self.start(endpoint, TransferType::Isochronous);
                self.say(id, RedirPacket::IsochronousStatus(status, endpoint));
            }
            RedirPacket::StopIsochronous(endpoint) => {
                let status = self.stop(endpoint);
                self.say(id, RedirPacket::IsochronousStatus(status, endpoint));
            }
            RedirPacket::StartInterrupt(endpoint) => {
                let status = self.start(endpoint, TransferType::Interrupt);
                self.say(id, RedirPacket::InterruptStatus(status, endpoint));
            }
            RedirPacket::StopInterrupt(endpoint) => {
                let status = self.stop(endpoint);
                self.say(id, RedirPacket::InterruptStatus(status, endpoint));
            }
            RedirPacket::Cancel => self.cancel(id),
            RedirPacket::Control(endpoint, _, setup, bytes) => {
                self.control(id, endpoint, setup, &bytes)
            }
            RedirPacket::Bulk(data) => self.transfer(id, TransferType::Bulk, data),
            RedirPacket::Interrupt(data) => self.transfer(id, TransferType::Interrupt, data),
            RedirPacket::Isochronous(data) => self.isochronous(data),
            // Rules of the guest's that QEMU applies itself, and what only we say.
            _ => {}
        }
        Ok(())
    }

    fn reset(&mut self) {
        self.drop_transfers();
        self.layout.configure(0);
        self.device.reset(self.now);
    }

    /// A standard request without data, or with one byte of answer.
    fn ask(&mut self, setup: Setup) -> (PacketStatus, u8) {
        match self.device.control(self.now, setup, &[]) {
            Ok(bytes) => (PacketStatus::Success, bytes.first().copied().unwrap_or(0)),
            Err(_) => (PacketStatus::Stall, 0),
        }
    }

    fn set_configuration(&mut self, id: u64, value: u8) {
        let (status, _) = self.ask(Setup::set_configuration(value));
        if status == PacketStatus::Success {
            self.drop_transfers();
            self.layout.configure(value);
            self.describe();
        }
        self.say(id, RedirPacket::ConfigurationStatus(status, value));
    }

    fn get_configuration(&mut self, id: u64) {
        let setup =
            Setup { kind: IN, request: request::GET_CONFIGURATION, length: 1, ..Setup::default() };
        let (status, value) = self.ask(setup);
        self.say(id, RedirPacket::ConfigurationStatus(status, value));
    }

    fn set_alternate(&mut self, id: u64, interface: u8, setting: u8) {
        let (status, _) = self.ask(Setup::set_interface(interface, setting));
        if status == PacketStatus::Success {
            self.leave(interface);
            self.layout.choose(interface, setting);
            self.describe();
        }
        self.say(id, RedirPacket::AlternateStatus(status, interface, setting));
    }

    fn get_alternate(&mut self, id: u64, interface: u8) {
        let setup = Setup {
            kind: IN | 1,
            request: request::GET_INTERFACE,
            value: 0,
            index: u16::from(interface),
            length: 1,
        };
        let (status, setting) = self.ask(setup);
        self.say(id, RedirPacket::AlternateStatus(status, interface, setting));
    }

    /// Ends what is under way on the endpoints of an interface.
    fn leave(&mut self, interface: u8) {
        self.streams.retain(|_, stream| stream.endpoint().interface != interface);
        let (left, kept) = std::mem::take(&mut self.pipes)
            .into_iter()
            .partition(|(_, (endpoint, _))| endpoint.interface == interface);
        self.pipes = kept;
        self.all_cancelled(left);
    }

    fn start(&mut self, address: u8, kind: TransferType) -> PacketStatus {
        let endpoint = self.layout.endpoint(address).filter(|endpoint| endpoint.kind() == kind);
        match endpoint.and_then(|endpoint| Stream::new(endpoint, self.now)) {
            Some(stream) => {
                self.streams.insert(address, stream);
                PacketStatus::Success
            }
            None => PacketStatus::Invalid,
        }
    }

    fn stop(&mut self, address: u8) -> PacketStatus {
        match self.streams.remove(&address) {
            Some(_) => PacketStatus::Success,
            None => PacketStatus::Invalid,
        }
    }

    /// A transfer that was already answered is not found, which is right.
    fn cancel(&mut self, id: u64) {
        for (address, (_, queue)) in &mut self.pipes {
            let found = queue.iter().position(|transfer| transfer.id == id);
            if let Some(transfer) = found.and_then(|at| queue.remove(at)) {
                let address = *address;
                return self.cancelled(address, &transfer);
            }
        }
    }

    fn control(&mut self, id: u64, endpoint: u8, setup: Setup, bytes: &[u8]) {
        let whole = setup.is_in() || bytes.len() == usize::from(setup.length);
        let answer = match whole {
            true => self.device.control(self.now, setup, bytes).map_err(|_| PacketStatus::Stall),
            false => Err(PacketStatus::Invalid),
        };
        let (status, mut back) = match answer {
            Ok(back) => (PacketStatus::Success, back),
            Err(status) => (status, Vec::new()),
        };
        back.truncate(usize::from(setup.length));
        let length = match status {
            PacketStatus::Success if !setup.is_in() => setup.length,
            _ => back.len() as u16,
        };
        self.say(id, RedirPacket::Control(endpoint, status, Setup { length, ..setup }, back));
        // It may have changed what the endpoints say.
        self.go_on();
    }

    /// A bulk transfer, or an interrupt packet to the device (QEMU has told its guest already that
    /// it went well, so it is kept until the device takes it).
    fn transfer(&mut self, id: u64, kind: TransferType, data: Data) {
        let length = data.length as usize;
        let to_host = data.endpoint & IN != 0;
        let whole = match kind {
            TransferType::Bulk if to_host => data.bytes.is_empty(),
            _ => !to_host && data.bytes.len() == length,
        };
        let mut transfer = Transfer::new(id, kind, length, data.bytes);
        transfer.stream = data.stream;
        if self.has_failed_unheard(data.endpoint) {
            transfer.hold();
        }
        let endpoint = self.layout.endpoint(data.endpoint);
        let Some(endpoint) = endpoint.filter(|endpoint| whole && endpoint.kind() == kind) else {
            return self.finish(data.endpoint, transfer.without_data(), PacketStatus::Invalid);
        };
        let (_, queue) = self.pipes.entry(data.endpoint).or_insert((endpoint, VecDeque::new()));
        queue.push_back(transfer);
        self.go_on();
    }

    fn isochronous(&mut self, data: Data) {
        if let Some(stream) = self.streams.get_mut(&data.endpoint) {
            stream.queue(data.bytes);
        }
    }
}
