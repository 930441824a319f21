//! Takes messages of several writers, each not before its contract lets it.
//!
//! A writer that sends too often waits with its next message, and everything behind that message
//! waits in the writer's own ring or mailbox. So it costs the reader no more work than its contract
//! allows, and no other writer waits for it. Writers take turns.

use crate::reader::Reader;
use diapason_abi::Nanos;
use diapason_state::Plain;

/// Something that messages of one writer are taken out of, such as a ring or a mailbox.
pub trait MessageSource {
    type Message;

    /// Takes the next message, if there is one.
    fn pop(&mut self) -> Option<Self::Message>;
}

impl<T: Plain, const N: usize> MessageSource for Reader<'_, T, N> {
    type Message = T;

    fn pop(&mut self) -> Option<T> {
        Reader::pop(self)
    }
}

/// The reading ends of several writers.
pub struct Intake<S: MessageSource, const WRITERS: usize> {
    writers: [Option<Turnstile<S>>; WRITERS],
    /// The writer that is asked first.
    next: usize,
}

/// The reading end of a writer, and its next message if that has to wait.
struct Turnstile<S: MessageSource> {
    source: S,
    held: Option<(S::Message, Nanos)>,
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

impl<S: MessageSource, const WRITERS: usize> Intake<S, WRITERS> {
    /// Returns the intake of these writers. A writer's place is its number.
    #[must_use]
    pub fn new(sources: [Option<S>; WRITERS]) -> Self {
        let writers = sources.map(|source| source.map(|source| Turnstile { source, held: None }));
        Intake { writers, next: 0 }
    }

    /// Returns an intake without writers.
    #[must_use]
    pub const fn empty() -> Self {
        Intake { writers: [const { None }; WRITERS], next: 0 }
    }

    /// Adds a writer at a place below `WRITERS`. One that was there is forgotten.
    pub fn put(&mut self, place: usize, source: S) {
        if let Some(writer) = self.writers.get_mut(place) {
            *writer = Some(Turnstile { source, held: None });
        }
    }

    /// Returns the source of a writer.
    pub fn source(&mut self, writer: usize) -> Option<&mut S> {
        self.writers.get_mut(writer)?.as_mut().map(|turnstile| &mut turnstile.source)
    }

    /// Takes a message that may come by `now`. `opens` returns when a message of a writer may come;
    /// it is asked once for each message.
    pub fn take(
        &mut self,
        now: Nanos,
        mut opens: impl FnMut(usize, &S::Message) -> Nanos,
    ) -> Option<Admitted<S::Message>> {
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
        let held = self.writers.iter().flatten().filter_map(|turnstile| turnstile.held.as_ref());
        held.map(|(_, opens)| *opens).min()
    }
}

impl<S: MessageSource> Turnstile<S> {
    fn take(
        &mut self,
        now: Nanos,
        opens: impl FnOnce(&S::Message) -> Nanos,
    ) -> Option<(S::Message, Option<Nanos>)> {
        if self.held.is_some() {
            let (message, opens) = self.held.take_if(|(_, opens)| *opens <= now)?;
            return Some((message, Some(opens)));
        }
        let message = self.source.pop()?;
        let opens = opens(&message);
        if opens > now {
            self.held = Some((message, opens));
            return None;
        }
        Some((message, None))
    }
}
