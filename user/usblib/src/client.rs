//! A client's ends of a service that is asked and answers.

use diapason_abi::{Errno, Nanos};
use diapason_pipe::{Reader, Writer};
use diapason_rt::memory::Dma;
use diapason_rt::pipe;
use diapason_rt::sync::Semaphore;
use diapason_state::Plain;

/// Pipes for `N` requests and as many answers, and memory that the client, the server and the
/// controller share.
pub struct UsbClient<A: Plain, B: Plain, const N: usize> {
    asks: Writer<'static, A, N>,
    answers: Reader<'static, B, N>,
    ask: Semaphore,
    /// Taken before looking for answers.
    pub ready: Semaphore,
    pub data: Dma,
}

impl<A: Plain, B: Plain, const N: usize> UsbClient<A, B, N> {
    /// The ends with these names: of both pipes, the memory, and both semaphores.
    pub(crate) fn named(
        [asks, answers, data, ask, ready]: [&str; 5],
    ) -> Result<UsbClient<A, B, N>, Errno> {
        Ok(UsbClient {
            asks: pipe::writer(asks)?,
            answers: pipe::reader(answers)?,
            ask: Semaphore::open(ask)?,
            ready: Semaphore::open(ready)?,
            data: Dma::attach(data)?,
        })
    }

    /// Asks; the server hears of it by [`UsbClient::ring`].
    pub(crate) fn put(&mut self, ask: &A) -> Result<(), Errno> {
        self.asks.push(ask).map_err(|_| Errno::Full)
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

    /// Waits for answers.
    ///
    /// # Errors
    /// `TimedOut`, or `Gone` if the semaphore was deleted.
    pub fn wait(&self, deadline: Nanos) -> Result<(), Errno> {
        self.ready.take(deadline)
    }
}
