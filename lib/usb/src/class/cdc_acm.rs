//! Serial lines over USB (CDC-ACM): line coding, control lines, bytes both ways, and what the other
//! side says about its line.
//!
//! Most devices drop what they have to say until DTR is set, so the line is set up before anything
//! comes. Transfers are queued before DTR is set: a device may speak as soon as it is, and the end
//! of that request may be told a whole interval of the interrupts later.

use super::cdc::{Notice, Notices, TO_INTERFACE, data_of};
use super::flow::{Errand, Inlet, Outlet};
use super::{Class, Completion, Request, TransferFault};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::Configuration;
use diapason_abi::Nanos;

/// Bytes that wait to be sent.
pub const ROOM: usize = 4096;
/// Transfers from the device kept pending. Each is one packet: a longer one would end only when it
/// is full, and a device that sends full packets would be heard late.
pub const DEPTH: usize = 16;
const SET_LINE_CODING: u8 = 0x20;
const SET_CONTROL_LINES: u8 = 0x22;
/// The notification of the line's state.
const SERIAL_STATE: u8 = 0x20;
const CLASS: [u8; 2] = [2, 2];
/// The protocol of the vendor's own: something else than a line (network devices with RNDIS).
const FOREIGN: u8 = 0xff;

/// How bytes are sent on the line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineCoding {
    pub rate: u32,
    /// 0: one stop bit, 1: one and a half, 2: two.
    pub stop_bits: u8,
    /// 0 none, 1 odd, 2 even, 3 mark, 4 space.
    pub parity: u8,
    /// Bits of data, 5 to 8 or 16.
    pub data_bits: u8,
}

impl LineCoding {
    /// Eight bits, no parity, one stop bit.
    #[must_use]
    pub const fn new(rate: u32) -> LineCoding {
        LineCoding { rate, stop_bits: 0, parity: 0, data_bits: 8 }
    }

    const fn encode(self) -> [u8; 7] {
        let [r0, r1, r2, r3] = self.rate.to_le_bytes();
        [r0, r1, r2, r3, self.stop_bits, self.parity, self.data_bits]
    }
}

/// The line state that the other side reports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SerialState(pub u16);

impl SerialState {
    pub const CARRIER: u16 = 1;
    /// The other side is ready.
    pub const READY: u16 = 1 << 1;
    pub const OVERRUN: u16 = 1 << 6;
}

/// An event of the serial line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SerialEvent<'a> {
    /// The line is set up.
    Opened,
    /// The device does not do line codings; the line is used as it is.
    CodingRefused,
    Data(&'a [u8]),
    State(SerialState),
    /// The line cannot be used.
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Coding,
    Lines,
    Open,
    Failed,
}

/// The driver of one line.
#[derive(Clone, Debug)]
pub struct CdcAcm {
    interface: u8,
    step: Step,
    /// The coding to set, if it is not set yet.
    coding: Option<LineCoding>,
    lines: Option<u16>,
    errand: Errand,
    notices: Option<Notices>,
    inlet: Inlet,
    outlet: Outlet<ROOM>,
}

impl CdcAcm {
    /// Returns the class for the first line of the configuration. It sets the line up with DTR and
    /// RTS.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>, coding: LineCoding) -> Option<CdcAcm> {
        let line = |class: [u8; 3]| class[..2] == CLASS && class[2] != FOREIGN;
        configuration.interfaces().filter(|i| line(i.class)).find_map(|control| {
            let data = data_of(configuration, &control)?;
            let input = data.endpoint(EndpointKind::BulkIn)?;
            let output = data.endpoint(EndpointKind::BulkOut)?;
            let notices = control.endpoint(EndpointKind::InterruptIn);
            Some(CdcAcm {
                interface: control.number,
                step: Step::Coding,
                coding: Some(coding),
                lines: Some(3),
                errand: Errand::new(),
                notices: notices.map(Notices::new),
                inlet: Inlet::new(input.address, input.packet.into(), DEPTH),
                outlet: Outlet::new(output.address, output.packet),
            })
        })
    }

    /// Sends as many of these bytes as there is room for, and says how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.outlet.write(bytes)
    }

    /// Changes how bytes are sent.
    pub fn set_coding(&mut self, coding: LineCoding) {
        self.coding = Some(coding);
    }

    /// Sets or clears "terminal ready" and "request to send".
    pub fn set_lines(&mut self, terminal_ready: bool, request_to_send: bool) {
        self.lines = Some(u16::from(terminal_ready) | u16::from(request_to_send) << 1);
    }

    /// Starts what is to be set, one after the other.
    fn begin(&mut self) {
        let setup = |request, value, length| Setup {
            kind: TO_INTERFACE,
            request,
            value,
            index: self.interface.into(),
            length,
        };
        if !self.errand.is_idle() {
            return;
        }
        if let Some(coding) = self.coding.take() {
            self.errand.begin(setup(SET_LINE_CODING, 0, 7), &coding.encode());
        } else if let Some(lines) = self.lines.take() {
            self.errand.begin(setup(SET_CONTROL_LINES, lines, 0), &[]);
        }
    }

    fn fail(&mut self, tell: &mut dyn FnMut(SerialEvent<'_>)) {
        if self.step != Step::Failed {
            self.step = Step::Failed;
            tell(SerialEvent::Failed);
        }
    }

    /// A control transfer ended. A stall says that the device has no such setting: that is no
    /// reason not to listen to it.
    fn answered(
        &mut self,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(SerialEvent<'_>),
    ) {
        match (self.step, result) {
            (_, Err(TransferFault::Stall)) | (_, Ok(_)) => {}
            (Step::Failed, _) => return,
            (_, Err(_)) => return self.fail(tell),
        }
        match self.step {
            Step::Coding => {
                self.step = Step::Lines;
                if result.is_err() {
                    tell(SerialEvent::CodingRefused);
                }
            }
            Step::Lines => {
                self.step = Step::Open;
                tell(SerialEvent::Opened);
            }
            Step::Open if result.is_err() => tell(SerialEvent::CodingRefused),
            Step::Open | Step::Failed => {}
        }
    }
}

impl Class for CdcAcm {
    type Event<'a> = SerialEvent<'a>;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.step == Step::Failed {
            return None;
        }
        if self.step != Step::Coding {
            let notices = self.notices.as_mut().and_then(Notices::request);
            if let Some(request) = notices.or_else(|| self.inlet.request()) {
                return Some(request);
            }
        }
        self.begin();
        if let Some(request) = self.errand.request(now) {
            return Some(request);
        }
        if self.step == Step::Open { self.outlet.request() } else { None }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(SerialEvent<'_>)) {
        if done.endpoint == 0 {
            if let Some(result) = self.errand.end(done.result) {
                self.answered(result, tell);
            }
        } else if done.endpoint == self.outlet.pipe.endpoint() {
            self.outlet.complete(done.result);
        } else if done.endpoint == self.inlet.pipe.endpoint() {
            match self.inlet.pipe.end(done.result) {
                Some(bytes) if !bytes.is_empty() => {
                    // It speaks: the line is open, whether that has been told or not.
                    if self.step == Step::Lines {
                        self.step = Step::Open;
                        tell(SerialEvent::Opened);
                    }
                    tell(SerialEvent::Data(bytes));
                }
                _ => {}
            }
        } else if let Some(notices) = &mut self.notices
            && notices.endpoint() == done.endpoint
            && let Some(Notice { kind: SERIAL_STATE, data: &[low, high], .. }) =
                notices.end(done.result)
        {
            tell(SerialEvent::State(SerialState(u16::from_le_bytes([low, high]))));
        }
        // A line without its notifications is still a line.
        if self.inlet.pipe.is_dead() || self.outlet.pipe.is_dead() {
            self.fail(tell);
        }
    }

    fn renew(&mut self, endpoint: u8) -> Option<usize> {
        let listens = !matches!(self.step, Step::Failed | Step::Coding);
        let works = endpoint == self.inlet.pipe.endpoint() && listens;
        if works { self.inlet.renew() } else { None }
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake()
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(SerialEvent<'_>)) {
        self.errand.wake(now);
    }
}
