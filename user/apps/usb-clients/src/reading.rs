//! How a pipe of packets is read, by its source's budget of work, until the reader is to end.

use diapason_rt::{Errno, Nanos, time};
use diapason_usblib::Packets;
use diapason_usblib::sensor::Packet;

/// How often a reader looks whether it is to end.
const LOOK: Nanos = Nanos::from_secs(1);

/// Reads packets for so many seconds (0: for ever). `take` says how many are missing before one,
/// and the reader then spends `busy` besides.
///
/// # Errors
/// The pipe cannot be read.
pub fn read_for(
    pipe: &mut Packets,
    seconds: u64,
    busy: Nanos,
    mut take: impl FnMut(&Packet) -> u64,
) -> Result<(), Errno> {
    let work = pipe.source().message;
    let (mut look_at, mut looks) = (time::now() + LOOK, 0);
    while seconds == 0 || looks < seconds {
        match pipe.read_wait(look_at) {
            Ok(packet) => {
                let missing = time::work(work, || take(&packet));
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
