//! A program's ends of the changes of modes: it asks the USB server for a mode, and reads what came
//! of it. The server answers each ask once.

use diapason_abi::{Errno, Nanos};
use diapason_contract::mode::{ANSWERS, ASKS, ModeAsk, RECORDS};
pub use diapason_contract::mode::{BUSY, DONE, ModeAnswer, NO_MODE, WITHOUT};
use diapason_pipe::{Reader, Writer};
use diapason_rt::{pipe, time};

/// The server looks for asks at least each 10 ms, and wakes nobody when it answers.
const LOOK: Nanos = Nanos::from_millis(5);

/// The ends of the program that asks for modes.
pub struct Modes {
    asks: Writer<'static, ModeAsk, RECORDS>,
    answers: Reader<'static, ModeAnswer, RECORDS>,
    number: u32,
}

impl Modes {
    /// Opens the rings of asks and of answers, of which a program has one end each.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn open() -> Result<Modes, Errno> {
        Ok(Modes { asks: pipe::writer(ASKS)?, answers: pipe::reader(ANSWERS)?, number: 0 })
    }

    /// Asks for the mode with this number of the description; returns the number of the ask.
    ///
    /// # Errors
    /// `Full` if too many asks wait.
    pub fn ask(&mut self, mode: u32) -> Result<u32, Errno> {
        let number = self.number.wrapping_add(1);
        self.asks.push(&ModeAsk { mode, number }).map_err(|_| Errno::Full)?;
        self.number = number;
        Ok(number)
    }

    /// Returns the next answer, whichever ask it is for.
    pub fn answer(&mut self) -> Option<ModeAnswer> {
        self.answers.pop()
    }

    /// Asks for a mode and waits for the answer. Answers to earlier asks are dropped.
    ///
    /// # Errors
    /// `Full`, or `TimedOut` at the deadline: the change may still be under way then.
    pub fn change(&mut self, mode: u32, deadline: Nanos) -> Result<ModeAnswer, Errno> {
        let number = self.ask(mode)?;
        loop {
            while let Some(answer) = self.answer() {
                if answer.number == number {
                    return Ok(answer);
                }
            }
            if time::now() >= deadline {
                return Err(Errno::TimedOut);
            }
            time::sleep(LOOK);
        }
    }
}
