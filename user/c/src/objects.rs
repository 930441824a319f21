//! Mutexes, semaphores, conditions, mailboxes, events and timers.

use crate::words::{CText, INVALID, Place, bytes, call, error, offer, status, store, whole};
use diapason_abi::call::{MUTEX, NO_HINT};
use diapason_abi::{CallNumber, Errno, Key, MESSAGE_BYTES, Nanos, SIGNAL_BATCH};

/// Creates or finds an object by the key of its name.
fn named<const CALL: u8>(text: CText, word: u64, place: Place<'_, u64>) -> i32 {
    match text.name() {
        Some(name) => made::<CALL>(Key::new(name), word, place),
        None => INVALID,
    }
}

/// Creates an object and writes its handle to its place, which is looked at first: an object whose
/// handle is lost would stay.
fn made<const CALL: u8>(key: Key, word: u64, place: Place<'_, u64>) -> i32 {
    if place.is_none() { INVALID } else { store(place, call::<CALL, _>([key.0, word])) }
}

#[unsafe(no_mangle)]
extern "C" fn dia_mutex_open(text: CText, mutex: Place<'_, u64>) -> i32 {
    named::<{ CallNumber::SemCreate as u8 }>(text, MUTEX, mutex)
}

#[unsafe(no_mangle)]
extern "C" fn dia_mutex_private(mutex: Place<'_, u64>) -> i32 {
    made::<{ CallNumber::SemCreate as u8 }>(Key::PRIVATE, MUTEX, mutex)
}

/// Locks; returns 1 (`DIA_OWNER_DIED`) if the last owner ended while holding it.
#[unsafe(no_mangle)]
extern "C" fn dia_mutex_lock(mutex: u64, deadline: u64) -> i32 {
    let locked = call::<{ CallNumber::SemLock as u8 }, _>([mutex, deadline, NO_HINT]);
    locked.map_or_else(error, |state| state as i32)
}

#[unsafe(no_mangle)]
extern "C" fn dia_mutex_unlock(mutex: u64) -> i32 {
    status(call::<{ CallNumber::SemUnlock as u8 }, _>([mutex]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_mutex_delete(mutex: u64) -> i32 {
    status(whole::<{ CallNumber::SemDelete as u8 }, _>([mutex]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_semaphore_open(text: CText, semaphore: Place<'_, u64>) -> i32 {
    named::<{ CallNumber::SemCreate as u8 }>(text, 0, semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn dia_semaphore_private(initial: u32, semaphore: Place<'_, u64>) -> i32 {
    made::<{ CallNumber::SemCreate as u8 }>(Key::PRIVATE, initial.into(), semaphore)
}

#[unsafe(no_mangle)]
extern "C" fn dia_semaphore_take(semaphore: u64, deadline: u64) -> i32 {
    status(call::<{ CallNumber::SemLock as u8 }, _>([semaphore, deadline, NO_HINT]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_semaphore_give(semaphore: u64) -> i32 {
    status(call::<{ CallNumber::SemUnlock as u8 }, _>([semaphore]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_semaphore_delete(semaphore: u64) -> i32 {
    status(whole::<{ CallNumber::SemDelete as u8 }, _>([semaphore]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_condition_open(text: CText, condition: Place<'_, u64>) -> i32 {
    named::<{ CallNumber::CvCreate as u8 }>(text, 0, condition)
}

#[unsafe(no_mangle)]
extern "C" fn dia_condition_private(condition: Place<'_, u64>) -> i32 {
    made::<{ CallNumber::CvCreate as u8 }>(Key::PRIVATE, 0, condition)
}

#[unsafe(no_mangle)]
extern "C" fn dia_condition_wait(condition: u64, mutex: u64, deadline: u64) -> i32 {
    status(call::<{ CallNumber::CvWait as u8 }, _>([condition, mutex, deadline]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_condition_signal(condition: u64) -> i32 {
    status(call::<{ CallNumber::CvSignal as u8 }, _>([condition, 1]))
}

/// Wakes everybody who waits, a few at a time.
#[unsafe(no_mangle)]
extern "C" fn dia_condition_broadcast(condition: u64) -> i32 {
    loop {
        match call::<{ CallNumber::CvSignal as u8 }, _>([condition, u64::MAX]) {
            Ok(woken) if woken == SIGNAL_BATCH as u64 => {}
            done => return status(done),
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn dia_condition_delete(condition: u64) -> i32 {
    status(whole::<{ CallNumber::CvDelete as u8 }, _>([condition]))
}

/// Opens a mailbox that raises `event` at each arrival, or none if that is 0.
#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_open(text: CText, event: u64, mailbox: Place<'_, u64>) -> i32 {
    named::<{ CallNumber::MboxCreate as u8 }>(text, event, mailbox)
}

#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_send(
    mailbox: u64,
    message: *const u8,
    length: usize,
    priority: u32,
    deadline: u64,
) -> i32 {
    // SAFETY: C passes a message of this length.
    let Some(message) = (unsafe { bytes(message, length) }) else { return INVALID };
    if message.len() > MESSAGE_BYTES {
        return INVALID;
    }
    let (address, length) = (message.as_ptr() as u64, message.len() as u64);
    let words = [mailbox, address, length, priority.into(), deadline];
    status(call::<{ CallNumber::MboxSend as u8 }, _>(words))
}

/// Receives into a buffer with room for the longest message; its length and priority go to their
/// places, if there are any.
#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_receive(
    mailbox: u64,
    buffer: Place<'_, [u8; MESSAGE_BYTES]>,
    length: Place<'_, usize>,
    priority: Place<'_, u32>,
    deadline: u64,
) -> i32 {
    let Some(buffer) = buffer else { return INVALID };
    let address = buffer.as_mut_ptr() as u64;
    match call::<{ CallNumber::MboxReceive as u8 }, _>([mailbox, address, deadline, NO_HINT]) {
        Ok(receipt) => {
            offer(length, (receipt >> 32) as usize);
            offer(priority, receipt as u32);
            0
        }
        Err(errno) => error(errno),
    }
}

/// The calling thread serves the mailbox of this name: it holds the mutex of it from now on.
#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_serve(text: CText, mailbox: Place<'_, u64>) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    let mutex = call::<{ CallNumber::SemCreate as u8 }, _>([Key::server(name).0, MUTEX]);
    let locked = mutex.and_then(|mutex| {
        call::<{ CallNumber::SemLock as u8 }, _>([mutex, Nanos::ZERO.0, NO_HINT])
    });
    match locked {
        Ok(_) => named::<{ CallNumber::MboxCreate as u8 }>(text, 0, mailbox),
        Err(errno) => error(errno),
    }
}

/// Asks the server of a mailbox; its answer, the length and the priority come into the same places.
/// The same call of the server answers, and waits for the next request.
#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_ask(
    mailbox: u64,
    buffer: Place<'_, [u8; MESSAGE_BYTES]>,
    length: Option<&mut usize>,
    priority: Option<&mut u32>,
    deadline: u64,
) -> i32 {
    let (Some(buffer), Some(length)) = (buffer, length) else { return INVALID };
    if *length > MESSAGE_BYTES {
        return INVALID;
    }
    let sent = priority.as_ref().map_or(0, |priority| u64::from(**priority));
    let (address, what) = (buffer.as_mut_ptr() as u64, (*length as u64) << 32 | sent);
    let words = [mailbox, address, what, mailbox, deadline];
    match call::<{ CallNumber::MboxCall as u8 }, _>(words) {
        Ok(receipt) => {
            *length = (receipt >> 32) as usize;
            if let Some(priority) = priority {
                *priority = receipt as u32;
            }
            0
        }
        Err(errno) => error(errno),
    }
}

#[unsafe(no_mangle)]
extern "C" fn dia_mailbox_delete(mailbox: u64) -> i32 {
    status(whole::<{ CallNumber::MboxDelete as u8 }, _>([mailbox]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_event_create(event: Place<'_, u64>) -> i32 {
    made::<{ CallNumber::EventCreate as u8 }>(Key::PRIVATE, 0, event)
}

/// Returns the interrupt of a granted device as an event.
#[unsafe(no_mangle)]
extern "C" fn dia_event_interrupt(device: CText, event: Place<'_, u64>) -> i32 {
    named::<{ CallNumber::SetIsr as u8 }>(device, 0, event)
}

/// Waits until the event has occurred; how often goes to its place, if there is one.
#[unsafe(no_mangle)]
extern "C" fn dia_event_wait(event: u64, deadline: u64, count: Place<'_, u64>) -> i32 {
    match occurred(event, deadline) {
        Ok(times) => {
            offer(count, times);
            0
        }
        Err(errno) => error(errno),
    }
}

/// Waits again where an interrupt that came too soon was held back: then nothing has occurred.
fn occurred(event: u64, deadline: u64) -> Result<u64, Errno> {
    loop {
        match call::<{ CallNumber::EventWait as u8 }, _>([event, deadline, NO_HINT])? {
            0 => {}
            times => return Ok(times),
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn dia_event_delete(event: u64) -> i32 {
    status(call::<{ CallNumber::EventDelete as u8 }, _>([event]))
}

/// Creates a timer that does not run. It is an event, to be waited for as one.
#[unsafe(no_mangle)]
extern "C" fn dia_timer_create(timer: Place<'_, u64>) -> i32 {
    made::<{ CallNumber::TimerCreate as u8 }>(Key::PRIVATE, 0, timer)
}

#[unsafe(no_mangle)]
extern "C" fn dia_timer_start(timer: u64, first: u64, period: u64) -> i32 {
    status(call::<{ CallNumber::TimerStart as u8 }, _>([timer, first, period]))
}

#[unsafe(no_mangle)]
extern "C" fn dia_timer_stop(timer: u64) -> i32 {
    status(call::<{ CallNumber::TimerStart as u8 }, _>([timer, 0, 0]))
}

/// Rings a doorbell that the description grants.
#[unsafe(no_mangle)]
extern "C" fn dia_doorbell_ring(text: CText) -> i32 {
    let Some(name) = text.name() else { return INVALID };
    status(call::<{ CallNumber::Ring as u8 }, _>([Key::new(name).0]))
}
