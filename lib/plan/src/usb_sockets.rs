//! The bill of a UDP socket of a USB network device: its frames come by the pipe from the device,
//! whose reader sorts them and wakes the program.
//!
//! The bill of the pipe ends when its reader is done with a frame. By then the program is woken. So
//! the program is the end of a chain of one thread behind the pipe, which only the datagrams of its
//! socket reach.

use crate::human;
use crate::missing::Missing;
use crate::pipes::{NoBill, Plant};
use crate::reports::FRAME_RECORDS;
use diapason_abi::{CallNumber, Nanos};
use diapason_analysis::server::Supply;
use diapason_devices::network::{ADDRESS, DATAGRAM_BYTES};
use diapason_pipe::bill::{Basis, Bill, ChainStage, chain};
use diapason_pipe::size::{Bucket, arrivals};
use diapason_system::{EthernetAdapter, SentOn, UdpPort, UsbAdapter, UsbModel};

impl Plant<'_> {
    /// Returns the bill of a socket of a USB network device.
    pub(crate) fn bill_behind_pipe(
        &self,
        (socket, usb): (&UdpPort, UsbAdapter),
        (own, supply, work): (Bucket, &Supply, Nanos),
    ) -> Result<Bill, NoBill> {
        let missing = |(what, remedy): Missing| NoBill::Missing(what, remedy);
        self.is_as_modeled(socket, usb).map_err(missing)?;
        let pipe = &self.system.pipes[usb.comes];
        let piped = self.input(usb.comes).map_err(missing)?;
        let before = piped.bill.map_err(|why| {
            let [title, _, help] = why.words(&pipe.name);
            NoBill::Missing(title, help)
        })?;
        let reader = self.reporting_on(socket, supply);
        let stage = ChainStage { message: work + self.calls.of_reader(), service: &reader };
        let program =
            chain(&[stage], &[own], before.total - before.least).map_err(NoBill::Refused)?;
        let basis = if program.apart { Basis::Backlog } else { Basis::Merged };
        let mut bill = before.passed_on(program.together, basis);
        bill.slots = arrivals(&[own], bill.total - bill.least);
        Ok(bill)
    }

    /// Checks that the computer behind the model sends to a socket no more than the description
    /// says, and as the socket takes it.
    fn is_as_modeled(&self, socket: &UdpPort, usb: UsbAdapter) -> Result<(), Missing> {
        let plug = &self.system.usb[usb.plug];
        let (name, device) = (&socket.name, &plug.name);
        if plug.model != UsbModel::Network {
            return Ok(());
        }
        let mac = self.system.adapters[socket.adapter].mac;
        if mac != ADDRESS {
            let what = format!("`{device}` has another address than its `[[adapter]]` says");
            let address: Vec<String> = ADDRESS.iter().map(|byte| format!("{byte:02x}")).collect();
            return Err((what, format!("write `mac = \"{}\"`", address.join(":"))));
        }
        let Some(gap) = plug.gap_ns else { return Ok(()) };
        if socket.bytes < DATAGRAM_BYTES as u64 {
            let what = format!(
                "`{name}` has `bytes = {}`, and datagrams of `{device}` have {DATAGRAM_BYTES}",
                socket.bytes
            );
            return Err((what, format!("write at least `bytes = {DATAGRAM_BYTES}`")));
        }
        let each = gap.saturating_mul(plug.datagrams.len() as u64);
        let Some(period) = socket.period_ns.filter(|period| *period > each) else { return Ok(()) };
        let what = format!(
            "`{name}` has a datagram every {}, and `{device}` sends it one every {}",
            human(period),
            human(each)
        );
        let remedy = format!("write `period = \"{each}ns\"` or less, or mend `gap` of `{device}`");
        Err((what, remedy))
    }

    /// Returns what the reader of a pipe does for a message besides its work, if it passes messages
    /// on to sockets: it wakes a program.
    pub(crate) fn passes_on(&self, process: u16) -> Nanos {
        match self.sockets_behind(process) {
            None => Nanos::ZERO,
            Some(_) => self.calls.of(CallNumber::SemUnlock),
        }
    }

    /// Returns what the reader of a pipe does for a message besides its work, if it sends each on
    /// to another host: what the program of a flow does there.
    pub(crate) fn sends_on(&self, how: Option<SentOn>) -> Nanos {
        match how {
            None => Nanos::ZERO,
            Some(SentOn::Link) => self.calls.of_link(),
            Some(SentOn::Socket) => self.calls.of_datagram(),
        }
    }

    /// Returns the most records of a report that a process at the end of a pipe makes about an
    /// adapter, if it is of one.
    pub(crate) fn adapter_records(&self, process: u16) -> Option<u64> {
        let receives = self.sockets_behind(process).map(|sockets| FRAME_RECORDS * (1 + sockets));
        let sends = |it: &EthernetAdapter| it.card().is_none() && it.sender() == Some(process);
        receives.or_else(|| self.system.adapters.iter().any(sends).then_some(FRAME_RECORDS))
    }

    /// Returns how many sockets get frames from a process that reads the pipe of an adapter.
    fn sockets_behind(&self, process: u16) -> Option<u64> {
        let is = |it: &EthernetAdapter| it.card().is_none() && it.driver == process;
        let adapter = self.system.adapters.iter().position(is)?;
        Some(self.system.sockets.iter().filter(|it| it.adapter == adapter).count() as u64)
    }
}
