//! Trials of mailboxes: messages in order.

use crate::why::{Outcome, Trial};
use crate::{check, refused};
use diapason_abi::MESSAGE_BYTES;
use diapason_rt::event::Event;
use diapason_rt::mailbox::Mailbox;
use diapason_rt::thread::spawn;
use diapason_rt::{Errno, Nanos, body, time};

/// In order. The mailbox `box` has room for four.
pub const TRIALS: &[(&str, Trial)] = &[
    ("messages come by priority, then by age", by_priority),
    ("an empty mailbox lets wait, or not", empty),
    ("a full mailbox lets wait, or not", full),
    ("a sender waits for room", sender_waits),
    ("the most urgent receiver is served", urgent_receiver),
    ("messages of every length come whole", lengths),
    ("arrivals raise an event", notification),
    ("calls are answered by calls", calls),
    ("a deleted mailbox is gone, and new when opened again", deleted),
];

body!(Receiver = receiver);
body!(Sender = sender);
body!(Server = server);

fn soon() -> Nanos {
    time::now() + Nanos::from_micros(100)
}

fn by_priority() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    for (text, priority) in [(b"c", 1), (b"a", u32::MAX), (b"d", 1), (b"b", 2)] {
        mailbox.send(text, priority, Nanos::ZERO)?;
    }
    for (text, priority) in [(b"a", u32::MAX), (b"b", 2), (b"c", 1), (b"d", 1)] {
        let message = mailbox.receive(Nanos::ZERO)?;
        check!(message.bytes() == text && message.priority == priority);
    }
    Ok(())
}

fn empty() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    refused!(mailbox.receive(Nanos::ZERO), WouldBlock);
    let deadline = soon();
    refused!(mailbox.receive(deadline), TimedOut);
    check!(time::now() >= deadline);
    refused!(mailbox.receive(Nanos(1)), TimedOut);
    Ok(())
}

fn full() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    for n in 0..4 {
        mailbox.send(&[n], 0, Nanos::ZERO)?;
    }
    refused!(mailbox.send(b"x", 9, Nanos::ZERO), Full);
    let deadline = soon();
    refused!(mailbox.send(b"x", 9, deadline), TimedOut);
    check!(time::now() >= deadline);
    for n in 0..4 {
        check!(mailbox.receive(Nanos::ZERO)?.bytes() == [n]);
    }
    refused!(mailbox.receive(Nanos::ZERO), WouldBlock);
    Ok(())
}

fn sender(n: u64) -> u64 {
    let sent = Mailbox::open("box").and_then(|own| own.send(&[n as u8], n as u32, Nanos::FOREVER));
    sent.map_or_else(|errno| errno as u64, |()| 0)
}

fn sender_waits() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    for _ in 0..4 {
        mailbox.send(&[1], 1, Nanos::ZERO)?;
    }
    let late = spawn::<Sender>("sender", 20, 5)?;
    let urgent = spawn::<Sender>("sender", 30, 4)?;
    time::sleep(Nanos::from_micros(100));
    // Room for one: the more urgent thread's message takes it, and is received next.
    mailbox.receive(Nanos::ZERO)?;
    check!(mailbox.receive(Nanos::ZERO)?.bytes() == [4]);
    check!(mailbox.receive(Nanos::ZERO)?.bytes() == [5]);
    check!(urgent.join(Nanos::FOREVER)? == 0 && late.join(Nanos::FOREVER)? == 0);
    for _ in 0..3 {
        mailbox.receive(Nanos::ZERO)?;
    }
    Ok(())
}

/// Returns the received value, or an error above 255.
fn receiver(_: u64) -> u64 {
    let message = Mailbox::open("box").and_then(|own| own.receive(Nanos::FOREVER));
    match message {
        Ok(message) => message.bytes().first().copied().unwrap_or(0).into(),
        Err(errno) => 256 + errno as u64,
    }
}

fn urgent_receiver() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    let late = spawn::<Receiver>("receiver", 20, 0)?;
    let urgent = spawn::<Receiver>("receiver", 30, 0)?;
    time::sleep(Nanos::from_micros(100));
    mailbox.send(&[1], 0, Nanos::ZERO)?;
    mailbox.send(&[2], 0, Nanos::ZERO)?;
    check!(urgent.join(Nanos::FOREVER)? == 1);
    check!(late.join(Nanos::FOREVER)? == 2);
    Ok(())
}

fn lengths() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    let bytes: [u8; MESSAGE_BYTES] = core::array::from_fn(|n| n as u8 + 1);
    let mut buffer = [0; MESSAGE_BYTES];
    for length in 0..=MESSAGE_BYTES {
        buffer.fill(0xaa);
        mailbox.send(&bytes[..length], 0, Nanos::ZERO)?;
        let (received, _) = mailbox.receive_into(&mut buffer, Nanos::ZERO)?;
        check!(received == length && buffer[..length] == bytes[..length]);
        check!(buffer[length..].iter().all(|byte| *byte == 0xaa));
    }
    // Nothing may lie anywhere, even where the compiler points for a slice of nothing.
    mailbox.send(&[], 0, Nanos::ZERO)?;
    check!(mailbox.receive(Nanos::ZERO)?.bytes().is_empty());
    Ok(())
}

fn notification() -> Outcome {
    let event = Event::new()?;
    let mailbox = Mailbox::open_with("box", &event)?;
    refused!(event.wait(Nanos::ZERO), WouldBlock);
    mailbox.send(&[1], 0, Nanos::ZERO)?;
    mailbox.send(&[2], 0, Nanos::ZERO)?;
    check!(event.wait(Nanos::FOREVER)? == 2);
    let sender = spawn::<Sender>("sender", 20, 3)?;
    check!(event.wait(soon())? == 1);
    check!(sender.join(Nanos::FOREVER)? == 0);
    drop(event);
    for _ in 0..3 {
        mailbox.receive(Nanos::ZERO)?;
    }
    // Without its event, the mailbox goes on as before.
    mailbox.send(&[4], 0, Nanos::ZERO)?;
    check!(mailbox.receive(Nanos::ZERO)?.bytes() == [4]);
    Ok(())
}

/// Answers `rounds` calls, each with one byte more than came; ends with the last one's length.
fn server(rounds: u64) -> u64 {
    let serve = || {
        let (requests, answers) = (Mailbox::open("box")?, Mailbox::open("orders")?);
        let mut buffer = [0; MESSAGE_BYTES];
        let (mut length, mut priority) = requests.receive_into(&mut buffer, Nanos::FOREVER)?;
        for _ in 1..rounds {
            buffer[length] = length as u8;
            (length, priority) =
                answers.call_into(&mut buffer, length + 1, priority, &requests, Nanos::FOREVER)?;
        }
        answers.send(&buffer[..length], priority, Nanos::ZERO)?;
        Ok::<_, Errno>(length as u64)
    };
    serve().unwrap_or(u64::MAX >> 1)
}

/// With a deadline, and without: then client and server mostly just change places.
fn calls() -> Outcome {
    let (requests, answers) = (Mailbox::open("box")?, Mailbox::open("orders")?);
    for deadline in [soon, || Nanos::FOREVER] {
        let server = spawn::<Server>("server", 40, 60)?;
        let mut buffer = [0xaa; MESSAGE_BYTES];
        let (mut length, mut sent) = (0, 0);
        for round in 0..60 {
            sent = length;
            let received = requests.call_into(&mut buffer, length, round, &answers, deadline())?;
            length = received.0;
            check!(received.1 == round);
            check!((0..length).all(|at| buffer[at] == at as u8) && buffer[length] == 0xaa);
        }
        check!(length == sent && server.join(Nanos::FOREVER)? == sent as u64);
        // Nobody answers: the message is sent all the same. A refused call sends nothing.
        refused!(requests.call_into(&mut buffer, 1, 0, &answers, soon()), TimedOut);
        refused!(requests.call_into(&mut buffer, 2, 0, &answers, Nanos::ZERO), WouldBlock);
        check!(requests.receive(Nanos::ZERO)?.bytes().len() == 1);
        refused!(requests.receive(Nanos::ZERO), WouldBlock);
    }
    Ok(())
}

fn deleted() -> Outcome {
    let mailbox = Mailbox::open("box")?;
    let waiting = spawn::<Receiver>("receiver", 40, 0)?;
    time::sleep(Nanos::from_micros(50));
    mailbox.delete()?;
    check!(waiting.join(Nanos::FOREVER)? == 256 + Errno::Gone as u64);
    refused!(mailbox.send(&[1], 0, Nanos::ZERO), Gone);
    refused!(mailbox.receive(Nanos::FOREVER), Gone);
    refused!(mailbox.delete(), Gone);
    let again = Mailbox::open("box")?;
    refused!(again.receive(Nanos::ZERO), WouldBlock);
    refused!(mailbox.receive(Nanos::FOREVER), Gone);
    Ok(())
}
