//! Tuned pipes for C: a pipe is named by its place, and its messages go to a function of C.
//!
//! The first call that opens a pipe of a place gives the thread of the pipe its function, for good:
//! messages that are still in the buffer of a closed pipe go there, too.

use crate::claim::Claim;
use crate::words::{INVALID, Place, REFUSED, error, offer, write_text};
use core::ffi::c_void;
use core::mem::transmute;
use core::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use diapason_abi::pipe::{OUT_SLOTS, PLACES};
use diapason_abi::{Errno, Nanos};
use diapason_can::canlib::{flags, frame};
use diapason_rt::sys;
use diapason_tpipe::{
    CanFrame, Endpoint, Granted, LOST_BEFORE, OUTSIDE, Outbox, Passage, Passer, Phase, Pipe,
    PipeError, Qos, RefusedPipe, Route, TimedFrame, TunedFunction, TunedSource, TunedThread,
    TunedWriter, WouldFit,
};

/// A CAN frame, with the flags of CANlib.
#[repr(C)]
#[derive(Clone, Copy)]
struct TpipeFrame {
    id: u32,
    flags: u32,
    length: u32,
    data: [u8; 8],
}

/// A message that came.
#[repr(C)]
struct TpipeMessage {
    frame: TpipeFrame,
    outside: u32,
    time: u64,
}

/// The quality of service that a pipe is asked for.
#[repr(C)]
struct TpipeQos {
    latency: u64,
    bits: u64,
    buffer: u64,
    execution: u64,
    burst: u64,
}

/// The terms of a pipe that was given.
#[repr(C)]
struct TpipeTerms {
    budget: u64,
    period: u64,
    bound: u64,
    taken: u64,
    slots: u64,
}

/// The counts of a pipe's thread.
#[repr(C)]
struct TpipeCounts {
    messages: u64,
    lost: u64,
    longest: u64,
}

type TpipeReader = extern "C" fn(&TpipeMessage, *mut c_void);
type TpipeSource = extern "C" fn(*mut TpipeFrame, u32, *mut c_void) -> u32;
type TpipePassage = extern "C" fn(&TpipeMessage, &mut TpipeFrame, *mut c_void) -> bool;

impl TpipeFrame {
    const EMPTY: TpipeFrame = TpipeFrame { id: 0, flags: 0, length: 0, data: [0; 8] };

    fn of(frame: &CanFrame, lost: bool) -> TpipeFrame {
        let mut data = [0; 8];
        for (to, from) in data.iter_mut().zip(frame.bytes()) {
            *to = *from;
        }
        let length = frame.code().into();
        TpipeFrame { id: frame.raw_id(), flags: flags(frame, lost), length, data }
    }

    /// Returns the frame. A frame that makes no sense ends the process: nobody waits for a result.
    fn read(&self, place: usize) -> CanFrame {
        let made = frame(self.id.into(), &self.data, self.length, self.flags);
        made.unwrap_or_else(|_| sys::fail(place as u64))
    }
}

impl TpipeMessage {
    fn of(message: &TimedFrame) -> TpipeMessage {
        let TimedFrame { frame, arrival } = message;
        let lost = arrival.flags & LOST_BEFORE != 0;
        TpipeMessage {
            frame: TpipeFrame::of(frame, lost),
            outside: (arrival.flags & OUTSIDE).into(),
            time: arrival.time,
        }
    }
}

/// The function of a place, its argument, and where its channel is.
struct Called {
    function: AtomicUsize,
    argument: AtomicUsize,
    phase: AtomicI32,
}

impl Called {
    const fn new() -> Called {
        let phase = AtomicI32::new(phase_number(Phase::Absent));
        let (function, argument) = (AtomicUsize::new(0), AtomicUsize::new(0));
        Called { function, argument, phase }
    }

    /// Returns the address of the function, and its argument.
    fn get(&self) -> (usize, *mut c_void) {
        let argument = self.argument.load(Ordering::Relaxed) as *mut c_void;
        (self.function.load(Ordering::Acquire), argument)
    }

    fn note(&self, phase: Phase) {
        self.phase.store(phase_number(phase), Ordering::Relaxed);
    }
}

/// Returns the number that C has for a phase.
const fn phase_number(phase: Phase) -> i32 {
    match phase {
        Phase::Absent => 0,
        Phase::Closed => 1,
        Phase::Changing => 2,
        Phase::Open => 3,
        Phase::BusOff => 4,
    }
}

/// The callee of the threads of all kinds: it passes everything on to the function of this place.
struct Caller(usize);

impl Caller {
    fn called(&self) -> &'static Called {
        &CALLED[self.0 % PLACES]
    }
}

impl TunedFunction for Caller {
    fn message(&self, message: &TimedFrame) {
        let (function, argument) = self.called().get();
        // SAFETY: only `tpipe_read` starts this thread, and it stored a function of this type.
        let function = unsafe { transmute::<usize, TpipeReader>(function) };
        function(&TpipeMessage::of(message), argument);
    }

    fn news(&self, phase: Phase) {
        self.called().note(phase);
    }
}

impl TunedSource for Caller {
    fn fill(&self, out: &mut Outbox<'_>) {
        let mut frames = [TpipeFrame::EMPTY; OUT_SLOTS];
        let room = usize::try_from(out.room()).unwrap_or(OUT_SLOTS).min(OUT_SLOTS);
        let (function, argument) = self.called().get();
        // SAFETY: only `tpipe_write` starts this thread, and it stored a function of this type.
        let function = unsafe { transmute::<usize, TpipeSource>(function) };
        let count = function(frames.as_mut_ptr(), room as u32, argument) as usize;
        if count > room {
            sys::fail(self.0 as u64);
        }
        for frame in frames.iter().take(count) {
            // A frame that finds no room is counted as lost.
            out.send(&frame.read(self.0));
        }
    }

    fn news(&self, phase: Phase) {
        self.called().note(phase);
    }
}

impl Passage for Caller {
    fn pass(&self, message: &TimedFrame) -> Option<CanFrame> {
        let mut passed = TpipeFrame::of(&message.frame, false);
        let (function, argument) = self.called().get();
        // SAFETY: only `tpipe_pass` starts this thread, and it stored a function of this type.
        let function = unsafe { transmute::<usize, TpipePassage>(function) };
        let goes = function(&TpipeMessage::of(message), &mut passed, argument);
        goes.then(|| passed.read(self.0))
    }

    fn news(&self, phase: Phase) {
        self.called().note(phase);
    }
}

/// The threads that a place can have. One of them is started.
struct Threads {
    reads: TunedThread<Caller>,
    writes: TunedWriter<Caller>,
    passes: Passer<Caller>,
}

const fn threads(place: usize) -> Threads {
    Threads {
        reads: TunedThread::new(place, Caller(place)),
        writes: TunedWriter::new(place, Caller(place)),
        passes: Passer::new(place, Caller(place)),
    }
}

/// A pipe, and why it was refused last.
struct Held {
    pipe: Option<Pipe>,
    /// The server has closed what an earlier owner of the place left open.
    cleared: bool,
    refused: Option<RefusedPipe>,
}

static CALLED: [Called; PLACES] = [const { Called::new() }; PLACES];
static THREADS: [Threads; PLACES] = [threads(0), threads(1), threads(2), threads(3), threads(4)];
static HELD: [Claim<Held>; PLACES] =
    [const { Claim::new(Held { pipe: None, cleared: false, refused: None }) }; PLACES];

/// Does something with a place; returns C's number for how it went.
fn with(place: u32, body: impl FnOnce(&mut Held) -> Result<(), PipeError>) -> i32 {
    let Some(held) = HELD.get(place as usize) else { return error(Errno::Absent) };
    let done = held.with(|held| {
        let done = body(held);
        if let Err(PipeError::Refused(refused)) = done {
            held.refused = Some(refused);
        }
        done
    });
    match done {
        None => error(Errno::Busy),
        Some(Ok(())) => 0,
        Some(Err(PipeError::Refused(_))) => REFUSED,
        Some(Err(PipeError::TimedOut)) => error(Errno::TimedOut),
        Some(Err(PipeError::NoSuchPlace)) => error(Errno::Absent),
        Some(Err(PipeError::InUse)) => error(Errno::Busy),
        Some(Err(PipeError::Nonsense)) => INVALID,
        Some(Err(PipeError::System(errno))) => error(errno),
    }
}

/// Writes the terms to their place, if there is one.
fn tell(terms: Place<'_, TpipeTerms>, granted: &Granted) {
    let Granted { budget, period, bound, taken, slots, .. } = *granted;
    let [budget, period, bound, taken] = [budget, period, bound, taken].map(|time| time.0);
    offer(terms, TpipeTerms { budget, period, bound, taken, slots: slots.into() });
}

fn wish(qos: &TpipeQos) -> Qos {
    Qos {
        latency: Nanos(qos.latency),
        tput: qos.bits,
        buffer: qos.buffer,
        execution: Nanos(qos.execution),
        burst: qos.burst,
    }
}

/// A request to open a pipe.
struct Opening<'a> {
    place: u32,
    route: Option<Route>,
    /// The address of the function, 0 if it is null.
    function: usize,
    argument: *mut c_void,
    qos: Option<&'a TpipeQos>,
    deadline: u64,
    terms: Place<'a, TpipeTerms>,
}

impl Opening<'_> {
    /// Opens the pipe. `start` makes one whose thread is of the right kind.
    fn open(
        self,
        start: impl FnOnce(Endpoint, &'static Threads) -> Result<Pipe, PipeError>,
    ) -> i32 {
        let place = self.place as usize;
        let (Some(route), Some(qos)) = (self.route, self.qos) else { return INVALID };
        let (Some(called), Some(threads)) = (CALLED.get(place), THREADS.get(place)) else {
            return error(Errno::Absent);
        };
        if self.function == 0 {
            return INVALID;
        }
        let deadline = Nanos(self.deadline);
        let mut same = true;
        let done = with(self.place, |held| {
            let pipe = match &mut held.pipe {
                Some(pipe) => {
                    same = called.get() == (self.function, self.argument);
                    pipe
                }
                none => {
                    called.argument.store(self.argument as usize, Ordering::Relaxed);
                    called.function.store(self.function, Ordering::Release);
                    none.insert(start(Endpoint { place, route }, threads)?)
                }
            };
            if !held.cleared {
                pipe.close(deadline)?;
                held.cleared = true;
            }
            if same {
                tell(self.terms, &pipe.open(route, &wish(qos), deadline)?);
            }
            Ok(())
        });
        if same { done } else { INVALID }
    }
}

/// Returns the number of a channel. None if no channel has so large a number.
fn channel(number: u32) -> Option<u8> {
    u8::try_from(number).ok()
}

/// Opens a pipe from a channel.
#[unsafe(no_mangle)]
extern "C" fn tpipe_read(
    place: u32,
    from: u32,
    function: Option<TpipeReader>,
    argument: *mut c_void,
    qos: Option<&TpipeQos>,
    deadline: u64,
    terms: Place<'_, TpipeTerms>,
) -> i32 {
    let function = function.map_or(0, |function| function as usize);
    let route = channel(from).map(Route::From);
    Opening { place, route, function, argument, qos, deadline, terms }
        .open(|endpoint, threads| Pipe::new(endpoint, &threads.reads))
}

/// Opens a pipe to a channel.
#[unsafe(no_mangle)]
extern "C" fn tpipe_write(
    place: u32,
    to: u32,
    function: Option<TpipeSource>,
    argument: *mut c_void,
    qos: Option<&TpipeQos>,
    deadline: u64,
    terms: Place<'_, TpipeTerms>,
) -> i32 {
    let function = function.map_or(0, |function| function as usize);
    let route = channel(to).map(Route::To);
    Opening { place, route, function, argument, qos, deadline, terms }
        .open(|endpoint, threads| Pipe::new(endpoint, &threads.writes))
}

/// Opens a pipe from a channel through a function to another channel.
#[unsafe(no_mangle)]
extern "C" fn tpipe_pass(
    place: u32,
    from: u32,
    to: u32,
    function: Option<TpipePassage>,
    argument: *mut c_void,
    qos: Option<&TpipeQos>,
    deadline: u64,
    terms: Place<'_, TpipeTerms>,
) -> i32 {
    let function = function.map_or(0, |function| function as usize);
    let route = channel(from).zip(channel(to)).map(|(from, to)| Route::Through(from, to));
    Opening { place, route, function, argument, qos, deadline, terms }
        .open(|endpoint, threads| Pipe::new(endpoint, &threads.passes))
}

/// Asks for other terms of an open pipe.
#[unsafe(no_mangle)]
extern "C" fn tpipe_change(
    place: u32,
    qos: Option<&TpipeQos>,
    deadline: u64,
    terms: Place<'_, TpipeTerms>,
) -> i32 {
    let Some(qos) = qos else { return INVALID };
    with(place, |held| {
        let pipe = held.pipe.as_mut().ok_or(PipeError::NoSuchPlace)?;
        tell(terms, &pipe.renegotiate(&wish(qos), Nanos(deadline))?);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn tpipe_close(place: u32, deadline: u64) -> i32 {
    with(place, |held| held.pipe.as_mut().ok_or(PipeError::NoSuchPlace)?.close(Nanos(deadline)))
}

/// Writes why the last request was refused, and what would fit, as a text.
#[unsafe(no_mangle)]
extern "C" fn tpipe_refusal(place: u32, text: *mut u8, room: usize) -> i32 {
    if text.is_null() || room == 0 {
        return INVALID;
    }
    with(place, |held| {
        let refused = held.refused.ok_or(PipeError::NoSuchPlace)?;
        // SAFETY: C passes so much room, and it is not null.
        unsafe { write_text(text, room, format_args!("{refused}")) };
        Ok(())
    })
}

/// Writes what would have fit instead of the last request that was refused.
#[unsafe(no_mangle)]
extern "C" fn tpipe_would_fit(place: u32, what: Place<'_, u32>, amount: Place<'_, u64>) -> i32 {
    with(place, |held| {
        let (number, value) = match held.refused.ok_or(PipeError::NoSuchPlace)?.would_fit {
            WouldFit::Nothing => (0, 0),
            WouldFit::Latency(latency) => (1, latency.0),
            WouldFit::Buffer(bytes) => (2, bytes),
            WouldFit::Tput(bits) => (3, bits),
        };
        offer(what, number);
        offer(amount, value);
        Ok(())
    })
}

/// Returns where the channel of a place is, or an error.
#[unsafe(no_mangle)]
extern "C" fn tpipe_phase(place: u32) -> i32 {
    let called = CALLED.get(place as usize);
    called.map_or(error(Errno::Absent), |called| called.phase.load(Ordering::Relaxed))
}

/// Writes the counts of a pipe since its thread began: of messages read, or else written.
#[unsafe(no_mangle)]
extern "C" fn tpipe_report(place: u32, counts: Place<'_, TpipeCounts>) -> i32 {
    with(place, |held| {
        let pipe = held.pipe.as_ref().ok_or(PipeError::NoSuchPlace)?;
        let (messages, lost, longest) = match pipe.written() {
            Some(written) => (written.through, written.lost, written.whole.0),
            None => {
                let threads = THREADS.get(place as usize).ok_or(PipeError::NoSuchPlace)?;
                let read = threads.reads.report();
                (read.messages, read.lost, read.longest)
            }
        };
        offer(counts, TpipeCounts { messages, lost, longest: longest.0 });
        Ok(())
    })
}
