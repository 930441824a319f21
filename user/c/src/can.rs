//! CANlib for C: Kvaser's calls on channels of the USB server.
//!
//! A handle is the number of its channel. One thread at a time uses it: another one is answered
//! with `canERR_NO_ACCESS`, so a channel costs no object of the kernel.

use crate::channel::AnyChannel;
use crate::claim::Claim;
use crate::words::{Place, bytes, offer, write_text};
use core::ffi::c_void;
use diapason_abi::{Errno, Nanos};
use diapason_can::Filter;
use diapason_can::canlib::{self as codes, any_frame, state};
use diapason_canlib::{AnyFrame, Error, LOST_BEFORE, TimedFrame};
use diapason_contract::can::{CHANNELS, SAMPLE_POINT};
use diapason_rt::time;

/// The USB server answers within this time.
const ANSWER: Nanos = Nanos::from_secs(5);
/// The unit of CANlib's times, unless the program sets another.
const MILLISECOND: u64 = 1_000_000;
const MICROSECOND: u64 = 1_000;
/// CANlib's timeout that never comes.
const FOREVER: u64 = 0xffff_ffff;

/// An open channel, and what CANlib keeps of it.
struct Open {
    channel: AnyChannel,
    /// The channel was opened to be read only: bus parameters are the server's affair.
    listens: bool,
    /// One filter for standard frames, one for extended ones.
    filters: [Filter; 2],
    /// Nanoseconds of a unit of time.
    unit: u64,
}

static OPEN: [Claim<Option<Open>>; CHANNELS] = [const { Claim::new(None) }; CHANNELS];

/// Returns the number that CANlib has for an error.
fn code(error: Error) -> i64 {
    match error {
        Error::NoSuchChannel => codes::NOTFOUND,
        Error::NoMessage => codes::NOMSG,
        Error::TimedOut => codes::TIMEOUT,
        Error::Full => codes::TXBUFOFL,
        Error::ReceiveOnly | Error::Silent => codes::NO_ACCESS,
        Error::OffBus => codes::NOTINITIALIZED,
        Error::OnBus | Error::NoSuchRate | Error::TooManyFilters | Error::Slow => codes::PARAM,
        Error::BusOff | Error::GivenUp => codes::HARDWARE,
        Error::Corrupt | Error::System(Errno::Gone) => codes::INTERNAL,
        Error::System(_) => codes::INTERNAL,
    }
}

/// Returns the channel's place, if there is one of this number.
fn place(handle: i32) -> Option<&'static Claim<Option<Open>>> {
    OPEN.get(usize::try_from(handle).ok()?)
}

/// Does something with an open channel; returns CANlib's number for how it went.
fn with(handle: i32, body: impl FnOnce(&mut Open) -> Result<(), i64>) -> i32 {
    let Some(place) = place(handle) else { return codes::INVHANDLE as i32 };
    let done = place.with(|open| open.as_mut().map_or(Err(codes::INVHANDLE), body));
    done.unwrap_or(Err(codes::NO_ACCESS)).map_or_else(|code| code as i32, |()| codes::OK as i32)
}

/// Returns the instant at which a timeout in milliseconds is over.
fn deadline(timeout: u64) -> Nanos {
    match timeout {
        0 => Nanos::ZERO,
        FOREVER.. => Nanos::FOREVER,
        _ => time::now() + Nanos(timeout * MILLISECOND),
    }
}

#[unsafe(no_mangle)]
extern "C" fn canInitializeLibrary() {}

#[unsafe(no_mangle)]
extern "C" fn canOpenChannel(number: i32, flags: i32) -> i32 {
    let flags = i64::from(flags);
    let known = codes::OPEN_FLAGS.iter().fold(0, |all, (_, flag)| all | flag);
    let listens = flags & codes::NO_INIT_ACCESS != 0;
    let fd = flags & codes::CAN_FD != 0;
    if flags & !known != 0 || listens && flags & codes::REQUIRE_INIT_ACCESS != 0 {
        return codes::PARAM as i32;
    }
    let Some(place) = place(number) else { return codes::NOTFOUND as i32 };
    let opened = place.with(|open| {
        if open.is_some() {
            return Err(codes::NO_ACCESS);
        }
        let channel = match listens {
            true => AnyChannel::listen(number as usize, fd),
            false => AnyChannel::open(number as usize, fd, time::now() + ANSWER),
        };
        let filters = [Filter::all(false), Filter::all(true)];
        let channel = channel.map_err(code)?;
        *open = Some(Open { channel, listens, filters, unit: MILLISECOND });
        Ok(())
    });
    opened.unwrap_or(Err(codes::NO_ACCESS)).map_or_else(|code| code as i32, |()| number)
}

/// Leaves the bus, unless the channel only listens, and frees the handle.
#[unsafe(no_mangle)]
extern "C" fn canClose(handle: i32) -> i32 {
    let left = canBusOff(handle);
    let Some(place) = place(handle) else { return left };
    if left == codes::OK as i32 {
        place.with(|open| *open = None);
    }
    left
}

#[unsafe(no_mangle)]
extern "C" fn canSetBusParams(
    handle: i32,
    frequency: i64,
    before: u32,
    after: u32,
    _jump: u32,
    samples: u32,
    _mode: u32,
) -> i32 {
    with(handle, |open| {
        let parameters = codes::bus_parameters(frequency, (before, after), SAMPLE_POINT);
        let (rate, point) = parameters.filter(|_| samples <= 1).ok_or(codes::PARAM)?;
        // CANlib's rule: without access to the parameters this succeeds and changes nothing.
        if open.listens { Ok(()) } else { open.channel.set_bus_params(rate, point).map_err(code) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn canSetBusOutputControl(handle: i32, driver: u32) -> i32 {
    with(handle, |open| {
        let silent = match i64::from(driver) {
            codes::SILENT => true,
            codes::NORMAL => false,
            _ => return Err(codes::NOT_SUPPORTED),
        };
        if open.listens { Ok(()) } else { open.channel.set_silent(silent).map_err(code) }
    })
}

/// Takes part in the bus. An interface that is not there in time does so as soon as it is.
#[unsafe(no_mangle)]
extern "C" fn canBusOn(handle: i32) -> i32 {
    with(handle, |open| {
        if open.listens { Ok(()) } else { open.channel.bus_on(deadline_of_answer()).map_err(code) }
    })
}

fn deadline_of_answer() -> Nanos {
    time::now() + ANSWER
}

#[unsafe(no_mangle)]
extern "C" fn canBusOff(handle: i32) -> i32 {
    with(handle, |open| {
        if open.listens { Ok(()) } else { open.channel.bus_off(deadline_of_answer()).map_err(code) }
    })
}

/// Writes a message, waiting until `deadline` for room.
fn write(
    handle: i32,
    id: i64,
    message: *const c_void,
    length: u32,
    flags: u32,
    timeout: Option<u64>,
) -> i32 {
    with(handle, |open| {
        let (remote, fd) = (i64::from(flags) & codes::RTR != 0, i64::from(flags) & codes::FDF != 0);
        if fd && !open.channel.is_fd() {
            return Err(codes::NOT_SUPPORTED);
        }
        let most = if fd { 64 } else { 8 };
        if fd && length > most {
            return Err(codes::PARAM);
        }
        let held = if remote { 0 } else { length.min(most) as usize };
        // SAFETY: C passes a message of this length, or null.
        let data = unsafe { bytes(message.cast(), held) }.ok_or(codes::PARAM)?;
        let frame = any_frame(id, data, length, flags)?;
        open.channel.write(&frame, timeout.map(deadline)).map_err(code)
    })
}

#[unsafe(no_mangle)]
extern "C" fn canWrite(
    handle: i32,
    id: i64,
    message: *const c_void,
    length: u32,
    flags: u32,
) -> i32 {
    write(handle, id, message, length, flags, None)
}

#[unsafe(no_mangle)]
extern "C" fn canWriteWait(
    handle: i32,
    id: i64,
    message: *const c_void,
    length: u32,
    flags: u32,
    timeout: u64,
) -> i32 {
    write(handle, id, message, length, flags, Some(timeout))
}

/// Waits until all that was written is through on the bus.
#[unsafe(no_mangle)]
extern "C" fn canWriteSync(handle: i32, timeout: u64) -> i32 {
    with(handle, |open| open.channel.write_sync(deadline(timeout)).map_err(code))
}

/// The places for a message that is read. Each may be null.
struct Places<'a> {
    id: Place<'a, i64>,
    data: *mut u8,
    length: Place<'a, u32>,
    flags: Place<'a, u32>,
    time: Place<'a, u64>,
}

impl Places<'_> {
    fn fill(self, message: &TimedFrame<AnyFrame>, unit: u64) {
        let TimedFrame { frame, arrival } = message;
        let data = frame.bytes();
        if !self.data.is_null() {
            // SAFETY: C passes room for the longest message of the channel, and it is not null.
            unsafe { self.data.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        }
        offer(self.id, frame.raw_id().into());
        let length = if frame.is_fd() { data.len() as u32 } else { frame.code().into() };
        offer(self.length, length);
        offer(self.flags, codes::any_flags(frame, arrival.flags & LOST_BEFORE != 0));
        offer(self.time, arrival.time / unit);
    }
}

#[unsafe(no_mangle)]
extern "C" fn canRead(
    handle: i32,
    id: Place<'_, i64>,
    message: *mut u8,
    length: Place<'_, u32>,
    flags: Place<'_, u32>,
    time: Place<'_, u64>,
) -> i32 {
    let places = Places { id, data: message, length, flags, time };
    with(handle, |open| {
        places.fill(&open.channel.read(None).map_err(code)?, open.unit);
        Ok(())
    })
}

/// Reads the next message, or waits for one. CANlib's rule: no message in time is `canERR_NOMSG`.
#[unsafe(no_mangle)]
extern "C" fn canReadWait(
    handle: i32,
    id: Place<'_, i64>,
    message: *mut u8,
    length: Place<'_, u32>,
    flags: Place<'_, u32>,
    time: Place<'_, u64>,
    timeout: u64,
) -> i32 {
    let places = Places { id, data: message, length, flags, time };
    with(handle, |open| match open.channel.read(Some(deadline(timeout))) {
        Ok(message) => {
            places.fill(&message, open.unit);
            Ok(())
        }
        Err(Error::TimedOut) => Err(codes::NOMSG),
        Err(error) => Err(code(error)),
    })
}

/// Counts messages that the program found missing by their contents.
#[unsafe(no_mangle)]
extern "C" fn dia_can_missed(handle: i32, messages: u64) -> i32 {
    with(handle, |open| {
        open.channel.missed(messages);
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn canReadStatus(handle: i32, flags: Place<'_, u64>) -> i32 {
    with(handle, |open| {
        let status = open.channel.read_status().map_err(code)?;
        offer(flags, state(status.health, status.pending() > 0));
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn canRequestChipStatus(handle: i32) -> i32 {
    with(handle, |open| {
        open.channel.request_chip_status(deadline_of_answer()).map(drop).map_err(code)
    })
}

#[unsafe(no_mangle)]
extern "C" fn canReadErrorCounters(
    handle: i32,
    transmit: Place<'_, u32>,
    receive: Place<'_, u32>,
    overruns: Place<'_, u32>,
) -> i32 {
    with(handle, |open| {
        let status = open.channel.read_status().map_err(code)?;
        offer(transmit, status.counters.0.into());
        offer(receive, status.counters.1.into());
        offer(overruns, status.overruns);
        Ok(())
    })
}

/// Sets the filter of one format: a frame passes if it equals `code` where `mask` has ones.
#[unsafe(no_mangle)]
extern "C" fn canSetAcceptanceFilter(handle: i32, code: u32, mask: u32, extended: i32) -> i32 {
    with(handle, |open| {
        let extended = extended != 0;
        if let Some(filter) = open.filters.get_mut(usize::from(extended)) {
            *filter = Filter { extended, code, mask };
        }
        open.channel.set_acceptance_filter(&open.filters).map_err(self::code)
    })
}

#[unsafe(no_mangle)]
extern "C" fn canFlushReceiveQueue(handle: i32) -> i32 {
    with(handle, |open| {
        // More than the pipe holds came meanwhile if this does not suffice.
        for _ in 0..diapason_contract::can::RECORDS {
            match open.channel.read(None) {
                Ok(_) => {}
                Err(Error::NoMessage) => break,
                Err(error) => return Err(code(error)),
            }
        }
        Ok(())
    })
}

/// Sets the unit of times in microseconds, or flushes what came.
#[unsafe(no_mangle)]
extern "C" fn canIoCtl(handle: i32, function: u32, buffer: *const c_void, length: u32) -> i32 {
    match i64::from(function) {
        codes::FLUSH_RX_BUFFER => canFlushReceiveQueue(handle),
        codes::SET_TIMER_SCALE => with(handle, |open| {
            // SAFETY: C passes a buffer of this length, or null.
            let bytes = unsafe { bytes(buffer.cast(), length as usize) }.ok_or(codes::PARAM)?;
            let scale = <[u8; 4]>::try_from(bytes).map_err(|_| codes::PARAM)?;
            let scale = u64::from(u32::from_ne_bytes(scale));
            if scale == 0 {
                return Err(codes::PARAM);
            }
            open.unit = scale * MICROSECOND;
            Ok(())
        }),
        _ => codes::NOT_IMPLEMENTED as i32,
    }
}

/// Returns the time of now in the unit of the channel's times.
#[unsafe(no_mangle)]
extern "C" fn kvReadTimer64(handle: i32, time: Place<'_, i64>) -> i32 {
    with(handle, |open| {
        offer(time, (time::now().0 / open.unit) as i64);
        Ok(())
    })
}

/// Writes what a result means, cut to the buffer, with a zero byte at its end.
#[unsafe(no_mangle)]
extern "C" fn canGetErrorText(result: i32, buffer: *mut u8, length: u32) -> i32 {
    let room = length as usize;
    if buffer.is_null() || room == 0 {
        return codes::PARAM as i32;
    }
    // SAFETY: C passes so much room, and it is not null.
    unsafe { write_text(buffer, room, format_args!("{}", codes::text(result.into()))) };
    codes::OK as i32
}
