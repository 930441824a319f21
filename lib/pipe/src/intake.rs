//! Takes messages of several writers, each not before its contract lets it.
//!
//! A writer that sends too often waits with its next message, and everything behind that message
//! waits in the writer's own ring. So it costs the reader no more work than its contract allows,
//! and no other writer waits for it. Writers take turns.

use crate::reader::Reader;
use diapason_abi::Nanos;
use diapason_state::Plain;

/// The reading ends of several writers.
pub struct Intake<'ring, T: Plain, const N: usize, const WRITERS: usize> {
    writers: [Option<Turnstile<'ring, T, N>>; WRITERS],
    /// The writer that is asked first.
    next: usize,
}

/// The reading end of a writer, and its next message if that has to wait.
struct Turnstile<'ring, T: Plain, const N: usize> {
    reader: Reader<'ring, T, N>,
    held: Option<(T, Nanos)>,
}

/// A message that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Admitted<T> {
    /// The place of its writer.
    pub writer: usize,
    pub message: T,
    /// When its contract let it in, if it came before that.
    pub held: Option<Nanos>,
}

impl<'ring, T: Plain, const N: usize, const WRITERS: usize> Intake<'ring, T, N, WRITERS> {
    /// Returns the intake of these writers. A writer's place is its number.
    #[must_use]
    pub fn new(readers: [Option<Reader<'ring, T, N>>; WRITERS]) -> Self {
        let writers = readers.map(|reader| reader.map(|reader| Turnstile { reader, held: None }));
        Intake { writers, next: 0 }
    }

    /// Takes a message that may come by `now`. `opens` returns when a message of a writer may come;
    /// it is asked once for each message.
    pub fn take(
        &mut self,
        now: Nanos,
        mut opens: impl FnMut(usize, &T) -> Nanos,
    ) -> Option<Admitted<T>> {
        for place in (self.next..WRITERS).chain(0..self.next) {
            let Some(turnstile) = &mut self.writers[place] else { continue };
            if let Some((message, held)) = turnstile.take(now, |message| opens(place, message)) {
                self.next = (place + 1) % WRITERS;
                return Some(Admitted { writer: place, message, held });
            }
        }
        None
    }

    /// Returns when the first of the messages that wait may come.
    #[must_use]
    pub fn due(&self) -> Option<Nanos> {
        let held = self.writers.iter().flatten().filter_map(|turnstile| turnstile.held);
        held.map(|(_, opens)| opens).min()
    }
}

impl<T: Plain, const N: usize> Turnstile<'_, T, N> {
    fn take(&mut self, now: Nanos, opens: impl FnOnce(&T) -> Nanos) -> Option<(T, Option<Nanos>)> {
        if let Some((message, opens)) = self.held {
            return (opens <= now).then(|| {
                self.held = None;
                (message, Some(opens))
            });
        }
        let message = self.reader.pop()?;
        let opens = opens(&message);
        if opens > now {
            self.held = Some((message, opens));
            return None;
        }
        Some((message, None))
    }
}
