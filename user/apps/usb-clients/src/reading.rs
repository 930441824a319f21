//! How a pipe is read, by its source's budget of work, until the reader is to end.

use diapason_rt::{Errno, Nanos, time};
use diapason_usblib::camera::FramePiece;
use diapason_usblib::network::{CameFrame, FrameReader};
use diapason_usblib::sensor::Packet;
use diapason_usblib::{BlockRun, Blocks, Packets, Pictures, PipeSource};

/// How often a reader looks whether it is to end.
const LOOK: Nanos = Nanos::from_secs(1);

/// The reading end of a pipe.
pub trait ReadingEnd {
    /// The message, or the piece of one, that is read at once.
    type Message;

    fn source(&self) -> &'static PipeSource;
    fn read_wait(&mut self, deadline: Nanos) -> Result<Self::Message, Errno>;
    fn missed(&mut self, messages: u64);
}

/// Makes the ends of `usblib` such ends.
macro_rules! ends {
    ($($end:ty: $message:ty;)*) => {$(
        impl ReadingEnd for $end {
            type Message = $message;

            fn source(&self) -> &'static PipeSource {
                <$end>::source(self)
            }

            fn read_wait(&mut self, deadline: Nanos) -> Result<$message, Errno> {
                <$end>::read_wait(self, deadline)
            }

            fn missed(&mut self, messages: u64) {
                <$end>::missed(self, messages);
            }
        }
    )*};
}

ends! {
    Packets: Packet;
    Pictures: FramePiece;
    Blocks: BlockRun;
    FrameReader: CameFrame;
}

/// Reads messages for so many seconds (0: for ever). `take` says how many are missing before one,
/// and the reader then spends `busy` besides.
///
/// # Errors
/// The pipe cannot be read.
pub fn read_for<E: ReadingEnd>(
    pipe: &mut E,
    seconds: u64,
    busy: Nanos,
    mut take: impl FnMut(&E, &E::Message) -> u64,
) -> Result<(), Errno> {
    let work = pipe.source().message;
    let (mut look_at, mut looks) = (time::now() + LOOK, 0);
    while seconds == 0 || looks < seconds {
        match pipe.read_wait(look_at) {
            Ok(message) => {
                let missing = time::work(work, || take(pipe, &message));
                pipe.missed(missing);
                if busy > Nanos::ZERO {
                    time::burn(busy);
                }
            }
            Err(Errno::TimedOut) => {}
            Err(errno) => return Err(errno),
        }
        if time::now() >= look_at {
            look_at += LOOK;
            looks += 1;
        }
    }
    Ok(())
}
