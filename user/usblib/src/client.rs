//! A client's ends of a service that only tells, and of one that is asked and answers.

use diapason_abi::{Errno, Nanos};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::DmaSegment;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::Plain;

/// Returns a client's end of a service that only tells: its pipe, and the semaphore to take before
/// looking into it.
///
/// # Errors
/// None for what the description grants.
pub fn inlet<T: Plain, const N: usize>(
    pipe: &str,
    ready: &str,
) -> Result<(Reader<'static, T, N>, Semaphore), Errno> {
    Ok((pipe::reader(pipe)?, Semaphore::open(ready)?))
}

/// Pipes for `N` requests and as many answers, and memory that the client, the server and the
/// controller share.
pub struct UsbClient<A: Plain, B: Plain, const N: usize> {
    asks: Writer<'static, A, N>,
    answers: Reader<'static, B, N>,
    ask: Semaphore,
    /// Taken before looking for answers.
    pub ready: Semaphore,
    pub data: DmaSegment,
}

impl<A: Plain, B: Plain, const N: usize> UsbClient<A, B, N> {
    /// Opens the ends with these names: of both pipes, the memory, and both semaphores.
    ///
    /// # Errors
    /// None for what the description grants.
    pub fn named(
        [asks, answers, data, ask, ready]: [&str; 5],
    ) -> Result<UsbClient<A, B, N>, Errno> {
        Ok(UsbClient {
            asks: pipe::writer(asks)?,
            answers: pipe::reader(answers)?,
            ask: Semaphore::open(ask)?,
            ready: Semaphore::open(ready)?,
            data: DmaSegment::attach(data)?,
        })
    }

    /// Asks; the server hears of it by [`UsbClient::ring`].
    pub(crate) fn put(&mut self, ask: &A) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)
    }

    /// Asks without waiting for the answer.
    ///
    /// # Errors
    /// `Full` if too many wait.
    pub fn ask(&mut self, ask: &A) -> Result<(), Errno> {
        self.put(ask)?;
        self.ring();
        Ok(())
    }

    /// Lets the server know of what was asked since the last time.
    pub fn ring(&self) {
        // At its limit it has been given often enough.
        let _ = self.ask.give();
    }

    /// Returns the next answer.
    pub fn pop(&mut self) -> Option<B> {
        self.answers.pop()
    }

    /// Returns the next answer, and waits for it.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn answer(&mut self, deadline: Nanos) -> Result<B, Errno> {
        loop {
            if let Some(answer) = self.pop() {
                return Ok(answer);
            }
            self.wait(deadline)?;
        }
    }

    /// Waits for answers.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn wait(&self, deadline: Nanos) -> Result<(), Errno> {
        self.ready.take(deadline)
    }
}
