//! The words of GDB's remote protocol, as far as the simulator speaks it: packets out of bytes, and
//! requests out of packets. Bytes come from outside, so nothing here panics.

/// The longest packet that is accepted, in bytes. GDB is told so.
pub const PACKET_MAX: usize = 0x4000;
/// The byte that Ctrl-C in GDB sends.
const INTERRUPT: u8 = 3;

/// Something that GDB sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FromGdb {
    Packet(String),
    Interrupt,
    /// A packet whose sum is wrong: GDB shall send it again.
    Damaged,
    /// More bytes without an end than a packet may have.
    TooLong,
}

/// Takes the first thing that GDB sent out of `bytes`. Acknowledgements and bytes between packets
/// are dropped. Returns `None` if the rest is still on its way.
pub fn take(bytes: &mut Vec<u8>) -> Option<FromGdb> {
    let begin = bytes.iter().position(|byte| matches!(*byte, b'$' | INTERRUPT));
    let Some(begin) = begin else {
        bytes.clear();
        return None;
    };
    bytes.drain(..begin);
    if bytes.first() == Some(&INTERRUPT) {
        bytes.remove(0);
        return Some(FromGdb::Interrupt);
    }
    let end = bytes.iter().position(|byte| *byte == b'#');
    let Some((end, sum)) = end.and_then(|end| Some((end, bytes.get(end + 1..end + 3)?))) else {
        return (bytes.len() > PACKET_MAX).then_some(FromGdb::TooLong);
    };
    let claimed = std::str::from_utf8(sum).ok().and_then(|sum| u8::from_str_radix(sum, 16).ok());
    let body = &bytes[1..end];
    let heard = if claimed == Some(sum_of(body)) {
        FromGdb::Packet(String::from_utf8_lossy(body).into_owned())
    } else {
        FromGdb::Damaged
    };
    bytes.drain(..end + 3);
    Some(heard)
}

fn sum_of(body: &[u8]) -> u8 {
    body.iter().fold(0, |sum, byte| sum.wrapping_add(*byte))
}

/// Returns the bytes of a packet. The text has none of the protocol's own characters.
#[must_use]
pub fn framed(text: &str) -> Vec<u8> {
    format!("${text}#{:02x}", sum_of(text.as_bytes())).into_bytes()
}

/// Returns bytes as hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes of hexadecimal digits; `None` if they are none.
fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    let digits = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    digits.collect()
}

/// Something that GDB wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GdbRequest {
    /// The abilities of the server.
    Supported,
    NoAcknowledgements,
    /// Whether the debugger began the program: it did, so it may end it.
    Attached,
    /// The description of the processor from this byte on, at most so many.
    Features(usize, usize),
    Why,
    Registers,
    /// Memory: address and bytes.
    Memory(u64, usize),
    /// Later requests are about this thread; 0: any.
    Select(u64),
    Alive(u64),
    Current,
    Threads,
    MoreThreads,
    /// The thread of this number in words.
    Describe(u64),
    /// Stop when these bytes change: address and length.
    Watch(u64, usize),
    Unwatch(u64, usize),
    /// A command for the simulator itself.
    Monitor(String),
    Continue,
    Step,
    ContinueBack,
    StepBack,
    Detach,
    Kill,
    /// A change of registers or memory: it would be another run.
    Change,
    /// Anything else, which the protocol answers with nothing.
    Unknown,
}

impl GdbRequest {
    /// Returns the request in a packet; `Unknown` for whatever else it says.
    #[must_use]
    pub fn parse(packet: &str) -> GdbRequest {
        GdbRequest::known(packet).unwrap_or(GdbRequest::Unknown)
    }

    fn known(packet: &str) -> Option<GdbRequest> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let length = |text: &str| usize::from_str_radix(text, 16).ok();
        let pair = |text: &str| {
            let (address, bytes) = text.split_once(',')?;
            Some((number(address)?, length(bytes)?))
        };
        Some(match packet {
            "?" => GdbRequest::Why,
            "g" => GdbRequest::Registers,
            "c" => GdbRequest::Continue,
            "s" => GdbRequest::Step,
            "bc" => GdbRequest::ContinueBack,
            "bs" => GdbRequest::StepBack,
            "k" => GdbRequest::Kill,
            "qC" => GdbRequest::Current,
            "qfThreadInfo" => GdbRequest::Threads,
            "qsThreadInfo" => GdbRequest::MoreThreads,
            "QStartNoAckMode" => GdbRequest::NoAcknowledgements,
            _ if packet.starts_with("qSupported") => GdbRequest::Supported,
            _ if packet.starts_with("qAttached") => GdbRequest::Attached,
            _ if packet == "D" || packet.starts_with("D;") => GdbRequest::Detach,
            _ => {
                if let Some(text) = packet.strip_prefix("qRcmd,") {
                    let text = unhex(text)?;
                    return Some(GdbRequest::Monitor(String::from_utf8_lossy(&text).into_owned()));
                }
                if let Some(text) = packet.strip_prefix("qXfer:features:read:target.xml:") {
                    let (from, most) = pair(text)?;
                    return Some(GdbRequest::Features(usize::try_from(from).ok()?, most));
                }
                if let Some(text) = packet.strip_prefix("qThreadExtraInfo,") {
                    return Some(GdbRequest::Describe(number(text)?));
                }
                let (kind, rest) = packet.split_at_checked(1)?;
                match kind {
                    "m" => pair(rest).map(|(address, bytes)| GdbRequest::Memory(address, bytes))?,
                    "T" => GdbRequest::Alive(number(rest)?),
                    // `-1` is every thread, and -1 has no hexadecimal digits.
                    "H" => GdbRequest::Select(rest.get(1..).and_then(number).unwrap_or(0)),
                    "M" | "X" | "G" | "P" => GdbRequest::Change,
                    "Z" | "z" => {
                        let (address, bytes) = pair(rest.strip_prefix("2,")?)?;
                        let set = kind == "Z";
                        let watch = if set { GdbRequest::Watch } else { GdbRequest::Unwatch };
                        watch(address, bytes)
                    }
                    _ => return None,
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(mut bytes: Vec<u8>) -> Vec<FromGdb> {
        std::iter::from_fn(|| take(&mut bytes)).take(100).collect()
    }

    #[test]
    fn packets_are_found_between_everything_else() {
        let bytes = b"+$?#3f\x03-$g#00$m10,4#2e+".to_vec();
        let packet = |text: &str| FromGdb::Packet(text.into());
        let heard = [packet("?"), FromGdb::Interrupt, FromGdb::Damaged, packet("m10,4")];
        assert_eq!(all(bytes), heard);
        assert_eq!(all(b"$half#".to_vec()), []);
        assert_eq!(take(&mut vec![b'$'; PACKET_MAX + 1]), Some(FromGdb::TooLong));
    }

    #[test]
    fn requests_are_read() {
        let requests = [
            ("m1000a,20", GdbRequest::Memory(0x1000a, 0x20)),
            ("Hg3", GdbRequest::Select(3)),
            ("Hc-1", GdbRequest::Select(0)),
            ("Z2,1f,8", GdbRequest::Watch(0x1f, 8)),
            ("z2,1f,8", GdbRequest::Unwatch(0x1f, 8)),
            ("Z0,1f,1", GdbRequest::Unknown),
            ("qRcmd,74696d65", GdbRequest::Monitor("time".into())),
            ("qRcmd,7469ä", GdbRequest::Unknown),
            ("qXfer:features:read:target.xml:0,ffb", GdbRequest::Features(0, 0xffb)),
            ("qThreadExtraInfo,5", GdbRequest::Describe(5)),
            ("bs", GdbRequest::StepBack),
            ("P0=1", GdbRequest::Change),
            ("D;1", GdbRequest::Detach),
            ("m", GdbRequest::Unknown),
            ("", GdbRequest::Unknown),
            ("ä", GdbRequest::Unknown),
        ];
        for (packet, request) in requests {
            assert_eq!(GdbRequest::parse(packet), request, "{packet}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_what_is_framed_is_found(
            before in proptest::collection::vec(any::<u8>(), 0..64),
            text in "[ -\"%-)+-|~]{0,40}",
        ) {
            for heard in all(before.clone()) {
                if let FromGdb::Packet(packet) = heard {
                    let _ = GdbRequest::parse(&packet);
                }
            }
            // A packet that was begun swallows the next one, as on the wire.
            if !before.contains(&b'$') {
                let bytes = [before, framed(&text)].concat();
                prop_assert_eq!(all(bytes).pop(), Some(FromGdb::Packet(text)));
            }
        }

        #[test]
        fn no_packet_panics(packet in "[mTHMXGPZzqvD?gcsbk0-9a-f,:;=\\-]{0,24}|\\PC{0,12}") {
            let _ = GdbRequest::parse(&packet);
        }
    }
}
