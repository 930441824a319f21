//! The debug capability: a small device-mode engine beside the host controller. It needs no running
//! controller and has no interrupt; software polls its event ring.
//!
//! Directions are the target's: what it puts on its OUT ring, the other host reads.

mod leads;
mod partner;
mod rings;

use crate::ring::Cursor;
use crate::{Memory, Xhc};
use diapason_abi::Nanos;
use diapason_devices::UsbDevice;
use diapason_devices::faulty::OwnClock;
use diapason_usb::register::{extended, port};
use diapason_usb::trb::{Completion, Kind, Trb};
pub use leads::CableEnd;
use leads::Leads;
use partner::{Face, Happening, IN, News, OUT, Partner};
use rings::Pipe;
use std::collections::VecDeque;
use std::rc::Rc;

/// Words of the capability.
pub(crate) const WORDS: u64 = 16;
/// How long a reset of the port is visible.
const RESETTING: Nanos = Nanos::from_millis(1);

/// The configuration of a debug capability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DebugConfig {
    /// The number of its port.
    pub port: u8,
    /// Packets of a burst, less one, up to 15.
    pub burst: u8,
    /// The number of the OUT ring in events: 0 or 2, as parts differ; the IN ring has the next.
    pub first_endpoint: u8,
    /// A reset of the controller leaves it alone.
    pub survives_reset: bool,
}

mod control {
    pub const RUNS: u32 = 1;
    pub const LINK_EVENTS: u32 = 1 << 1;
    pub const HALT_OUT: u32 = 1 << 2;
    pub const HALT_IN: u32 = 1 << 3;
    pub const RUN_CHANGE: u32 = 1 << 4;
    pub const ENABLE: u32 = 1 << 31;
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Off,
    Disconnected,
    Enabled,
    Configured,
    Resetting,
    Disabled,
}

/// The capability's registers and rings.
#[derive(Debug)]
pub(crate) struct Debug {
    config: DebugConfig,
    leads: Leads,
    /// The device that the host finds while it is on.
    face: Option<Rc<Face>>,
    /// The host's count of resets and configurations, as far as it came through.
    count: u64,
    /// Packets that came and wait for a block.
    received: VecDeque<Vec<u8>>,
    /// Packets that the host may send, or has sent, and that have not come.
    granted: usize,
    state: State,
    link_events: bool,
    run_change: bool,
    changes: u32,
    /// Words 2 to 7: size, base and read pointer of the event ring.
    events: [u32; 6],
    context: u64,
    identity: [u32; 2],
    pipes: [Pipe; 2],
    /// A reset of the port ends then.
    due: Nanos,
}

impl Debug {
    /// Returns a capability that is switched off.
    pub fn new(config: DebugConfig) -> Debug {
        Debug {
            config,
            leads: Leads::default(),
            face: None,
            count: 0,
            received: VecDeque::new(),
            granted: 0,
            state: State::Off,
            link_events: false,
            run_change: false,
            changes: 0,
            events: [0; 6],
            context: 0,
            identity: [0; 2],
            pipes: [Pipe::default(), Pipe::default()],
            due: Nanos::FOREVER,
        }
    }

    /// Returns when there is something to look at.
    pub fn next(&self) -> Nanos {
        let happening = self.leads.next_happening();
        if self.state == State::Resetting { self.due } else { happening }
    }

    fn tell(&self, now: Nanos, news: News) {
        self.leads.tell(now, news);
    }

    fn control(&self) -> u32 {
        let flag = |set: bool, bit: u32| if set { bit } else { 0 };
        let runs = self.state == State::Configured;
        flag(runs, control::RUNS)
            | flag(self.link_events, control::LINK_EVENTS)
            | flag(self.pipes[OUT].halted, control::HALT_OUT)
            | flag(self.pipes[IN].halted, control::HALT_IN)
            | flag(self.run_change, control::RUN_CHANGE)
            | u32::from(self.config.burst) << 16
            | flag(runs, 1 << 24)
            | flag(self.state != State::Off, control::ENABLE)
    }

    fn port_status(&self) -> u32 {
        let (connected, enabled, reset, link) = match self.state {
            State::Off => (0, 0, 0, port::link::DISABLED),
            State::Disconnected => (0, 0, 0, port::link::RX_DETECT),
            State::Enabled | State::Configured => (1, port::ENABLED, 0, port::link::U0),
            State::Resetting => (1, 0, port::RESET, port::link::RX_DETECT),
            State::Disabled => (1, 0, 0, port::link::DISABLED),
        };
        let speed = if connected == 1 { 4 << port::SPEED_SHIFT } else { 0 };
        connected | enabled | reset | link << port::LINK_SHIFT | speed | self.changes
    }

    fn is_connected(&self) -> bool {
        !matches!(self.state, State::Off | State::Disconnected)
    }

    fn read(&self, word: u64, segments_log2: u8, has_events: bool) -> u32 {
        match word {
            0 => u32::from(extended::DEBUG) | u32::from(segments_log2) << 16,
            2..=7 => self.events[word as usize - 2],
            8 => self.control(),
            9 => {
                let number = if self.is_connected() { self.config.port } else { 0 };
                let survives = u32::from(self.config.survives_reset) << 1;
                u32::from(number) << 24 | survives | u32::from(has_events)
            }
            10 => self.port_status(),
            12 => self.context as u32,
            13 => (self.context >> 32) as u32,
            14 | 15 => self.identity[word as usize - 14],
            _ => 0,
        }
    }
}

impl Xhc {
    /// Returns the other end of a debug cable, to be plugged into another controller's port. The
    /// partner notices actions of the other end after `delay`. The port finds a device while the
    /// debug capability is switched on and no other host has it. `None` without a capability.
    ///
    /// The cable begins at the end `own` of this controller and leads to the end `far` of the
    /// other.
    #[must_use]
    pub fn debug_partner(
        &mut self,
        delay: Nanos,
        [own, far]: &[CableEnd; 2],
    ) -> Option<Box<dyn UsbDevice>> {
        let debug = self.debug.as_mut()?;
        let (cable, face) = (debug.leads.add(own), debug.face.clone());
        Some(Box::new(Partner::new(&cable, delay, far.clone(), face)))
    }

    /// Takes over the cables of the debug capability of a controller that lost its power. No host
    /// finds that capability any more.
    pub fn take_cables(&mut self, from: &mut Xhc, now: Nanos) {
        if let (Some(debug), Some(from)) = (&mut self.debug, &mut from.debug) {
            from.leads.show(now, None);
            from.leads.let_go();
            debug.leads = core::mem::take(&mut from.leads);
        }
    }

    /// Lets the cables of its debug capability go by this clock.
    pub fn go_by(&mut self, world: OwnClock) {
        if let Some(debug) = &mut self.debug {
            debug.leads.go_by(world);
        }
    }

    /// Returns whether the debug capability is on, so that a host at the other end finds a device.
    #[must_use]
    pub fn debug_answers(&self) -> bool {
        self.debug.as_ref().is_some_and(|debug| debug.state != State::Off)
    }

    pub(crate) fn read_debug(&self, word: u64) -> u32 {
        let has_events = self.interrupters.last().is_some_and(|ring| !ring.is_empty());
        let segments = self.config.segments_log2;
        self.debug.as_ref().map_or(0, |debug| debug.read(word, segments, has_events))
    }

    pub(crate) fn write_debug(&mut self, memory: &mut dyn Memory, word: u64, value: u32) {
        let Some(debug) = &mut self.debug else { return };
        match word {
            1 => self.ring_debug(memory, value >> 8 & 0xff),
            2..=7 => {
                debug.events[word as usize - 2] = value;
                self.write_debug_events(memory, word);
            }
            8 => self.control_debug(memory, value),
            10 => self.write_debug_port(memory, value),
            12 => debug.context = debug.context & !0xffff_ffff | u64::from(value & !0xf),
            13 => debug.context = debug.context & 0xffff_ffff | u64::from(value) << 32,
            14 | 15 => debug.identity[word as usize - 14] = value,
            _ => {}
        }
    }

    fn write_debug_events(&mut self, memory: &mut dyn Memory, word: u64) {
        let Some(debug) = &self.debug else { return };
        let [size, _, low, high, read_low, read_high] = debug.events;
        let (table, read) = (
            u64::from(high) << 32 | u64::from(low & !0xf),
            u64::from(read_high) << 32 | u64::from(read_low & !0xf),
        );
        let which = self.interrupters.len() - 1;
        self.interrupters[which].place(table, size & 0xffff, read);
        match word {
            5 => self.load_table(memory, which),
            7 => {
                self.interrupters[which].make_room();
                self.flush(memory, which);
                self.serve_debug(memory);
            }
            _ => {}
        }
    }

    fn control_debug(&mut self, memory: &mut dyn Memory, value: u32) {
        let Some(debug) = &mut self.debug else { return };
        debug.link_events = value & control::LINK_EVENTS != 0;
        debug.run_change &= value & control::RUN_CHANGE == 0;
        let (on, wanted) = (debug.state != State::Off, value & control::ENABLE != 0);
        match (on, wanted) {
            (false, true) => self.switch_debug_on(memory),
            (true, false) => self.switch_debug_off(memory),
            (true, true) if debug.state == State::Configured => {
                for (ring, bit) in [(OUT, control::HALT_OUT), (IN, control::HALT_IN)] {
                    if value & bit != 0 {
                        self.halt_pipe(memory, ring, Completion::Stall);
                    }
                }
            }
            _ => {}
        }
    }

    /// Reads the context: texts, names, where the rings begin.
    fn switch_debug_on(&mut self, memory: &mut dyn Memory) {
        let Some(context) = self.debug.as_ref().map(|debug| debug.context) else { return };
        let Some(info) = self.load_words::<16>(memory, context) else { return };
        let mut strings: [Vec<u8>; 4] = Default::default();
        for (i, text) in strings.iter_mut().enumerate() {
            text.resize((info[8] >> (8 * i) & 0xff) as usize, 0);
            let address = u64::from(info[2 * i + 1]) << 32 | u64::from(info[2 * i]);
            if !text.is_empty() && self.load(memory, address, text).is_none() {
                return;
            }
        }
        let cursors = [OUT, IN].map(|ring| self.pipe_cursor(memory, context, ring));
        let now = self.now;
        let Some(debug) = &mut self.debug else { return };
        for (pipe, cursor) in debug.pipes.iter_mut().zip(cursors) {
            *pipe = Pipe::at(cursor.unwrap_or_default());
        }
        let [first, second] = debug.identity;
        let face = Face {
            strings,
            vendor: (first >> 16) as u16,
            protocol: first as u8,
            product: second as u16,
            revision: (second >> 16) as u16,
            burst: debug.config.burst,
        };
        debug.face = Some(Rc::new(face));
        debug.state = State::Disconnected;
        debug.leads.show(now, debug.face.as_ref());
    }

    fn pipe_cursor(&mut self, memory: &mut dyn Memory, base: u64, ring: usize) -> Option<Cursor> {
        let at = base.wrapping_add(0x48 + 0x40 * ring as u64);
        let [low, high] = self.load_words(memory, at)?;
        let pointer = u64::from(high) << 32 | u64::from(low & !0xf);
        Some(Cursor { pointer, cycle: low & 1 != 0 })
    }

    /// Off: the host finds nobody; the context says where the rings stand.
    fn switch_debug_off(&mut self, memory: &mut dyn Memory) {
        self.leave_configured(memory, State::Off);
        for ring in [OUT, IN] {
            self.show_pipe(memory, ring, 3);
        }
        if let Some(debug) = &mut self.debug {
            (debug.changes, debug.run_change) = (0, false);
            debug.face = None;
            debug.leads.show(self.now, None);
            debug.leads.let_go();
        }
        self.look_at_ports(memory);
    }

    /// The controller was reset.
    pub(crate) fn reset_debug(&mut self) {
        if let Some(debug) = self.debug.as_mut().filter(|debug| !debug.config.survives_reset) {
            debug.leads.show(self.now, None);
            debug.leads.let_go();
            let leads = std::mem::take(&mut debug.leads);
            *debug = Debug { leads, ..Debug::new(debug.config) };
        }
    }

    fn write_debug_port(&mut self, memory: &mut dyn Memory, value: u32) {
        let Some(debug) = &mut self.debug else { return };
        debug.changes &= !(value & port::CHANGES);
        let wanted = value & port::ENABLED != 0;
        match debug.state {
            State::Enabled | State::Configured if !wanted => {
                debug.leads.show(self.now, None);
                self.leave_configured(memory, State::Disabled);
            }
            State::Disabled if wanted => {
                debug.leads.show(self.now, debug.face.as_ref());
                debug.state = State::Enabled;
            }
            _ => {}
        }
    }

    /// Notes a change of the port; the first one makes an event.
    fn change_debug(&mut self, memory: &mut dyn Memory, change: u32) {
        let Some(debug) = &mut self.debug else { return };
        let first = debug.changes == 0;
        debug.changes |= change;
        if first {
            let status = Trb::event_status(Completion::Success, 0);
            self.post_debug(memory, Trb::new(Kind::PortStatusChange, 0, status, 0));
        }
    }

    /// Looks at what happened on the cable, then moves data.
    pub(crate) fn run_debug(&mut self, memory: &mut dyn Memory) {
        let now = self.now;
        let Some(debug) = &mut self.debug else { return };
        if debug.state == State::Resetting && debug.due <= now {
            debug.due = Nanos::FOREVER;
            debug.state = State::Enabled;
            self.change_debug(memory, port::RESET_CHANGE);
        }
        while let Some(happening) = self.next_happening() {
            self.heed(memory, happening);
        }
        self.serve_debug(memory);
    }

    fn next_happening(&mut self) -> Option<Happening> {
        let debug = self.debug.as_mut().filter(|debug| debug.state != State::Resetting)?;
        debug.leads.take_happening(self.now)
    }

    fn heed(&mut self, memory: &mut dyn Memory, happening: Happening) {
        let now = self.now;
        let Some(debug) = &mut self.debug else { return };
        if let Happening::Reset(count) | Happening::Asked(count) | Happening::Configured(count, _) =
            happening
        {
            debug.count = count;
        }
        match (happening, debug.state) {
            (_, State::Off) => debug.leads.let_go(),
            (Happening::Taken(count), _) if count == debug.count => self.taken(memory),
            (Happening::Packet(count, packet), State::Configured) if count == debug.count => {
                debug.receive(packet);
            }
            (Happening::Reset(_) | Happening::Asked(_), State::Disconnected) => {
                debug.state = State::Enabled;
                self.change_debug(memory, port::CONNECT_CHANGE);
                self.look_at_ports(memory);
            }
            (Happening::Reset(_), _) => {
                debug.due = now + RESETTING;
                debug.leads.show(now, debug.face.as_ref());
                self.leave_configured(memory, State::Resetting);
            }
            (Happening::Unplugged, State::Disconnected) => {}
            (Happening::Unplugged, _) => {
                debug.leads.let_go();
                debug.leads.show(now, debug.face.as_ref());
                self.leave_configured(memory, State::Disconnected);
                self.change_debug(memory, port::CONNECT_CHANGE);
                self.look_at_ports(memory);
            }
            (Happening::Configured(_, true), State::Enabled) => debug.state = State::Configured,
            (Happening::Configured(_, false), State::Configured) => {
                self.leave_configured(memory, State::Enabled);
            }
            (Happening::Cleared(ring), State::Configured) => self.clear_halt(memory, ring),
            _ => {}
        }
    }
}
