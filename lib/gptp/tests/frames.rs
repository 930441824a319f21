//! The bytes of frames: those that `ptp4l` of linuxptp 3.1.1 sends, and whatever else comes.

use diapason_abi::Nanos;
use diapason_gptp::{
    Announce, ETHERTYPE, GROUP, GptpBody, GptpFault, GptpFrame, GptpHeader, GptpMessage,
    Grandmaster, HEAD, PortIdentity, TimeProperties, identity_of,
};
use diapason_random::Random;

const MAC: [u8; 6] = [0x52, 0x54, 0, 0, 0, 1];
const OWN: PortIdentity = PortIdentity { clock: identity_of(MAC), port: 1 };
const OTHER: PortIdentity = PortIdentity { clock: [0x52, 0x54, 0, 0xff, 0xfe, 0, 0, 2], port: 1 };

fn message(body: GptpBody<'_>, sequence: u16, log_interval: i8) -> GptpMessage<'_> {
    GptpMessage {
        header: GptpHeader { source: OWN, sequence, correction_ns: 0, log_interval },
        body,
    }
}

/// Returns bytes from hexadecimal digits; a number in brackets stands for so many zeros.
fn bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        if let Some(zeros) = word.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
            bytes.resize(bytes.len() + zeros.parse::<usize>().unwrap(), 0);
        } else {
            let digits = word.as_bytes().chunks(2).map(|two| str::from_utf8(two).unwrap());
            bytes.extend(digits.map(|two| u8::from_str_radix(two, 16).unwrap()));
        }
    }
    bytes
}

const fn time(seconds: u64, nanos: u64) -> Nanos {
    Nanos(seconds * 1_000_000_000 + nanos)
}

/// Each message as it was captured from `ptp4l`, and as it is read.
fn captured(mut see: impl FnMut(&str, GptpMessage<'_>)) {
    let seconds = 0x6955_b916;
    let grandmaster = Grandmaster::free(248, OWN.clock);
    let properties = TimeProperties { flags: 0, utc_offset: 37, source: 0xa0 };
    let path = [OWN.clock];
    let announce = Announce { grandmaster, steps: 0, properties, path: &path };
    see(
        "1b02004c0000 (14) 525400fffe0000010001 0008 05 00 (10) 0025 00 f8 f8feffff f8 \
         525400fffe000001 0000 a0 0008 0008 525400fffe000001",
        message(GptpBody::Announce(announce), 8, 0),
    );
    see(
        "1002002c00000200 (12) 525400fffe0000010001 003e 00 fd (10)",
        message(GptpBody::Sync, 0x3e, -3),
    );
    see(
        "1802004c0000 (14) 525400fffe0000010001 003e 02 fd 00006955b916 156a3023 \
         0003 001c 0080c2 000001 (22)",
        message(GptpBody::FollowUp { origin: time(seconds, 0x156a_3023) }, 0x3e, -3),
    );
    see(
        "120200360000 (14) 525400fffe0000010001 000a 05 00 (20)",
        message(GptpBody::PdelayReq, 10, 0),
    );
    let received = time(seconds, 0x1b96_47f9);
    see(
        "1302003600000200 (12) 525400fffe0000010001 000a 05 7f 00006955b916 1b9647f9 \
         525400fffe0000020001",
        message(GptpBody::PdelayResp { received, requester: OTHER }, 10, 127),
    );
    let sent = time(seconds, 0x1b97_cc19);
    see(
        "1a0200360000 (14) 525400fffe0000010001 000a 05 7f 00006955b916 1b97cc19 \
         525400fffe0000020001",
        message(GptpBody::PdelayRespFollowUp { sent, requester: OTHER }, 10, 127),
    );
}

#[test]
fn frames_are_those_of_linuxptp() {
    captured(|text, message| {
        let (frame, body) = (GptpFrame::new(MAC, &message), bytes(text));
        let head = [&GROUP[..], &MAC, &ETHERTYPE.to_be_bytes()].concat();
        assert_eq!(frame.bytes(), [head, body.clone()].concat(), "{message:?}");
        assert_eq!(GptpMessage::read(&body), Ok(message));
        // Adapters pad short frames, and a newer minor version means nothing.
        let mut padded = body;
        padded.resize(padded.len().max(46) + 7, 0xee);
        padded[1] = 0x12;
        assert_eq!(GptpMessage::read(&padded), Ok(message));
    });
}

#[test]
fn a_message_that_is_cut_is_refused_wherever_it_is_cut() {
    captured(|text, message| {
        let whole = bytes(text);
        for length in 0..whole.len() {
            assert_eq!(GptpMessage::read(&whole[..length]), Err(GptpFault::Short), "{length}");
            let mut shorter = whole.clone();
            shorter[2..4].copy_from_slice(&(length as u16).to_be_bytes());
            // An Announce is whole without its path, and so is a Follow_Up without its field.
            let ends = match message.body {
                GptpBody::Announce(_) => length == 64,
                GptpBody::FollowUp { .. } => length >= 44,
                _ => false,
            };
            assert_eq!(GptpMessage::read(&shorter).is_ok(), ends, "{length} {message:?}");
        }
    });
}

#[test]
fn each_fault_has_its_name() {
    let refused = |at: usize, byte: u8, text: &str| {
        let mut bytes = bytes(text);
        bytes[at] = byte;
        GptpMessage::read(&bytes).unwrap_err()
    };
    let mut faults = Vec::new();
    captured(|text, message| {
        for (at, byte, fault) in [
            (0, 0x0b, GptpFault::Profile),
            (0, 0x2b, GptpFault::Profile),
            (0, 0x1c, GptpFault::Kind),
            (1, 1, GptpFault::Version),
            (3, 33, GptpFault::Length),
            (2, 1, GptpFault::Short),
            (4, 1, GptpFault::Domain),
            (8, 0x7f, GptpFault::Correction),
            (8, 0x80, GptpFault::Correction),
        ] {
            assert_eq!(refused(at, byte, text), fault, "{message:?}");
        }
        let fault = match message.body {
            GptpBody::Sync => refused(6, 0, text),
            GptpBody::PdelayResp { .. } | GptpBody::FollowUp { .. } => refused(40, 0x3c, text),
            GptpBody::PdelayRespFollowUp { .. } => refused(34, 1, text),
            GptpBody::Announce(_) => refused(67, 9, text),
            GptpBody::PdelayReq => return,
        };
        let named = match message.body {
            GptpBody::Sync => GptpFault::OneStep,
            GptpBody::Announce(_) => GptpFault::Tlv,
            _ => GptpFault::Timestamp,
        };
        assert_eq!(fault, named);
    });
    faults.extend(GptpFault::ALL.map(GptpFault::name));
    faults.sort_unstable();
    faults.dedup();
    assert_eq!(faults.len(), GptpFault::ALL.len());
    for (place, fault) in GptpFault::ALL.into_iter().enumerate() {
        assert_eq!(fault as usize, place);
    }
}

/// Every message that is read is read again from the frame that is written of it.
#[test]
fn damaged_messages_are_refused_or_mean_what_is_written_of_them() {
    let mut random = Random::new(88);
    let (mut read, mut refused) = (0, 0);
    for _ in 0..20_000 {
        captured(|text, _| {
            let mut bytes = bytes(text);
            for _ in 0..random.between(1, 4) {
                let at = random.index(bytes.len());
                bytes[at] = random.bits() as u8;
            }
            let Ok(message) = GptpMessage::read(&bytes) else { return };
            let frame = GptpFrame::new(MAC, &message);
            let again = GptpMessage::read(&frame.bytes()[HEAD..]);
            if let GptpBody::Announce(announce) = message.body {
                assert!(announce.path.len() <= 1);
            }
            assert_eq!(again, Ok(message));
        });
        let mut noise = [0; 80];
        noise.iter_mut().for_each(|byte| *byte = random.bits() as u8);
        let head = [0x10 | noise[0] & 15, 2, 0, noise[3] % 90, 0, 0];
        noise[..6].copy_from_slice(&head);
        noise[8..16].fill(0);
        match GptpMessage::read(&noise) {
            Ok(_) => read += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(read > 300 && refused > 1_000, "{read} {refused}");
}
