//! Ctrl-C and its relatives end a run early: what was seen until then is reported, and the emulator
//! does not outlive the command. A second one ends the command at once.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Builder;

/// Added to the number of a signal in the exit code of a command that it ended.
const SIGNALLED: u8 = 128;

/// The number of the signal that came; 0 is none.
static CAME: OnceLock<Arc<AtomicUsize>> = OnceLock::new();

/// Begins to wait for signals. Before this, and if a second one comes, they end the process.
///
/// # Errors
/// If the system takes no handlers.
pub fn await_signals() -> Result<(), Failure> {
    let (came, one) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    if CAME.set(came.clone()).is_err() {
        return Ok(());
    }
    for (signal, number) in [(SIGHUP, 1), (SIGINT, 2), (SIGTERM, 15)] {
        // In this order: the first signal finds that none came before.
        let code = i32::from(SIGNALLED) + signal;
        flag::register_conditional_shutdown(signal, code, one.clone())
            .and_then(|_| flag::register(signal, one.clone()))
            .and_then(|_| flag::register_usize(signal, came.clone(), number))
            .map_err(|error| Failure::io("wait for signals", &error))?;
    }
    // A thread that simulates leaves signals to others, so there must be another one.
    let waiting = Builder::new().name("signals".into()).spawn(wait);
    waiting.map(|_| ()).map_err(|error| Failure::io("wait for signals", &error))
}

/// Does nothing for ever, so that handlers of signals have a thread.
fn wait() {
    loop {
        std::thread::park();
    }
}

/// Returns whether a run is to end now.
#[must_use]
pub fn came() -> bool {
    exit_code().is_some()
}

/// Returns the exit code of a command that a signal ended.
#[must_use]
pub fn exit_code() -> Option<u8> {
    let number = CAME.get()?.load(Ordering::Relaxed);
    u8::try_from(number).ok().filter(|number| *number > 0).map(|number| SIGNALLED + number)
}
