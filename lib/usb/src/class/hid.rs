//! Keyboards by the boot protocol: eight bytes a report, keys going down and coming up.

use super::flow::{Errand, Inlet};
use super::{Class, Completion, Request, TransferFault};
use crate::Setup;
use crate::context::EndpointKind;
use crate::descriptor::Configuration;
use diapason_abi::Nanos;

/// Human interface, boot, keyboard.
const CLASS: [u8; 3] = [3, 1, 1];
/// Bytes of a report: modifiers, one reserved, six keys.
const REPORT: usize = 8;
/// Usage of the first of the eight modifier keys.
pub const MODIFIERS: u8 = 0xe0;
/// Usages up to this one say that the keyboard cannot tell which keys are down.
const ERRORS: u8 = 3;
/// Kind of requests: class, interface.
const TO_INTERFACE: u8 = 0x21;
const SET_REPORT: u8 = 9;
const SET_IDLE: u8 = 0x0a;
const SET_PROTOCOL: u8 = 0x0b;
/// Type of the report that sets lights.
const OUTPUT_REPORT: u16 = 2 << 8;

/// An event of the keyboard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyboardEvent {
    /// The keyboard is listened to.
    Opened,
    Key {
        /// The key's usage on the keyboard page: 4 is A, 0xe0 is left control.
        usage: u8,
        /// Down, or up again.
        down: bool,
    },
    /// The keyboard cannot be used.
    Failed,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Protocol,
    Idle,
    Open,
    Failed,
}

/// The driver of one keyboard.
#[derive(Clone, Debug)]
pub struct Keyboard {
    interface: u8,
    step: Step,
    asked: bool,
    lights: Option<u8>,
    errand: Errand,
    inlet: Inlet,
    /// The last report that meant something.
    report: [u8; REPORT],
}

impl Keyboard {
    /// Returns the class for the first boot keyboard of the configuration.
    #[must_use]
    pub fn find(configuration: &Configuration<'_>) -> Option<Keyboard> {
        configuration.interfaces().filter(|i| i.class == CLASS).find_map(|interface| {
            let input = interface.endpoint(EndpointKind::InterruptIn)?;
            Some(Keyboard {
                interface: interface.number,
                step: Step::Protocol,
                asked: false,
                lights: None,
                errand: Errand::new(),
                inlet: Inlet::new(input.address, input.packet.into(), 2),
                report: [0; REPORT],
            })
        })
    }

    /// Sets the lights: bit 0 numbers, 1 capitals, 2 scroll lock.
    pub fn set_lights(&mut self, lights: u8) {
        self.lights = Some(lights);
    }

    fn begin(&mut self) {
        if !self.errand.is_idle() {
            return;
        }
        let index = self.interface.into();
        let setup =
            |request, value, length| Setup { kind: TO_INTERFACE, request, value, index, length };
        match self.step {
            Step::Protocol if !self.asked => self.errand.begin(setup(SET_PROTOCOL, 0, 0), &[]),
            Step::Idle if !self.asked => self.errand.begin(setup(SET_IDLE, 0, 0), &[]),
            Step::Open => {
                if let Some(lights) = self.lights.take() {
                    self.errand.begin(setup(SET_REPORT, OUTPUT_REPORT, 1), &[lights]);
                }
            }
            Step::Protocol | Step::Idle | Step::Failed => {}
        }
        self.asked = true;
    }

    /// A control transfer ended. Many keyboards do not take the requests they should, and need not.
    fn answered(
        &mut self,
        result: Result<&[u8], TransferFault>,
        tell: &mut dyn FnMut(KeyboardEvent),
    ) {
        if !matches!(result, Ok(_) | Err(TransferFault::Stall)) {
            return self.fail(tell);
        }
        match self.step {
            Step::Protocol => (self.step, self.asked) = (Step::Idle, false),
            Step::Idle => {
                self.step = Step::Open;
                tell(KeyboardEvent::Opened);
            }
            Step::Open | Step::Failed => {}
        }
    }

    fn fail(&mut self, tell: &mut dyn FnMut(KeyboardEvent)) {
        if self.step != Step::Failed {
            self.step = Step::Failed;
            tell(KeyboardEvent::Failed);
        }
    }

    /// A report: what is new is down, what is missing is up. Ups come first.
    fn take(&mut self, bytes: &[u8], tell: &mut dyn FnMut(KeyboardEvent)) {
        let Some(report) = bytes.first_chunk::<REPORT>() else { return };
        if (1..=ERRORS).contains(&report[2]) {
            return;
        }
        let old = core::mem::replace(&mut self.report, *report);
        for down in [false, true] {
            let (before, after) = if down { (&old, report) } else { (report, &old) };
            let modifiers = after[0] & !before[0];
            for bit in (0..8).filter(|bit| modifiers & 1 << bit != 0) {
                tell(KeyboardEvent::Key { usage: MODIFIERS + bit, down });
            }
            for place in 2..REPORT {
                let usage = after[place];
                let twice = after[2..place].contains(&usage);
                let possible = usage > ERRORS && usage < MODIFIERS;
                if possible && !twice && !before[2..].contains(&usage) {
                    tell(KeyboardEvent::Key { usage, down });
                }
            }
        }
    }
}

impl Class for Keyboard {
    type Event<'a> = KeyboardEvent;

    fn request(&mut self, now: Nanos) -> Option<Request<'_>> {
        if self.step == Step::Failed {
            return None;
        }
        self.begin();
        if let Some(request) = self.errand.request(now) {
            return Some(request);
        }
        if self.step == Step::Open { self.inlet.request() } else { None }
    }

    fn complete(&mut self, _: Nanos, done: Completion<'_>, tell: &mut dyn FnMut(KeyboardEvent)) {
        if done.endpoint == 0 {
            if let Some(result) = self.errand.end(done.result) {
                self.answered(result, tell);
            }
        } else if done.endpoint == self.inlet.pipe.endpoint() {
            if let Some(bytes) = self.inlet.pipe.end(done.result) {
                self.take(bytes, tell);
            }
            if self.inlet.pipe.is_dead() {
                self.fail(tell);
            }
        }
    }

    fn next_wake(&self) -> Nanos {
        self.errand.next_wake()
    }

    fn wake(&mut self, now: Nanos, _: &mut dyn FnMut(KeyboardEvent)) {
        self.errand.wake(now);
    }
}
