//! Connections of clients: what they say is obeyed or refused, and nothing panics.

use crate::support::{Draw, Random};
use diapason_abi::Nanos;
use diapason_can::frame::{extended, standard};
use diapason_can::socketcand::{COMMAND_MAX, Dialogue, Reaction, SUBSCRIPTIONS_MAX};
use diapason_can::{CanFrame, FdFrame};

fn buses() -> Vec<String> {
    vec!["can0".into(), "can3".into()]
}

fn hear(dialogue: &mut Dialogue, text: &str) -> Vec<Reaction> {
    let mut reactions = Vec::new();
    dialogue.hear(text.as_bytes(), &buses(), &mut reactions);
    reactions
}

fn answer(text: &str) -> Reaction {
    Reaction::Answer(text.into())
}

/// Returns a client of the bus `can3` in raw mode.
fn raw() -> Dialogue {
    let mut dialogue = Dialogue::default();
    let opened = hear(&mut dialogue, "< open can3 >< rawmode >");
    assert_eq!(opened, [answer("< ok >"), answer("< ok >")]);
    dialogue
}

#[test]
fn a_client_opens_a_bus_and_sends_in_the_words_of_python_can() {
    let mut dialogue = raw();
    assert_eq!(dialogue.bus(), Some(1));
    let frame = CanFrame::data(standard(0x123).unwrap(), &[0xde, 0x0a, 0]).unwrap();
    assert_eq!(hear(&mut dialogue, "< send 123 3 de a 0 >"), [Reaction::Send(frame)]);
    let empty = CanFrame::data(extended(0x1abc_de00).unwrap(), &[]).unwrap();
    assert_eq!(hear(&mut dialogue, "< send 1ABCDE00 0  >\n"), [Reaction::Send(empty)]);
    let remote = CanFrame::remote(standard(1).unwrap(), 4).unwrap();
    assert_eq!(hear(&mut dialogue, "<sendrtr 1 4>"), [Reaction::Send(remote)]);
    assert_eq!(hear(&mut dialogue, "< echo >"), [answer("< echo >")]);
    assert_eq!(hear(&mut dialogue, "< send 123 1"), []);
    assert_eq!(hear(&mut dialogue, " 7 >").len(), 1, "a command may come in pieces");
}

#[test]
fn frames_are_told_with_the_time_of_the_bus() {
    let mut dialogue = raw();
    let time = Nanos(23_424_242_999);
    let mut tell = |frame: CanFrame| dialogue.tell(time, &frame.into()).unwrap();
    let id = standard(0x12).unwrap();
    let data = CanFrame::data(id, &[0x11, 0x02]).unwrap();
    assert_eq!(tell(data), "< frame 012 23.424242 1102 >");
    assert_eq!(tell(CanFrame::data(id, &[]).unwrap()), "< frame 012 23.424242  >");
    let long = CanFrame::data(extended(1).unwrap(), &[1]).unwrap();
    assert_eq!(tell(long), "< frame 00000001 23.424242 01 >");
    assert_eq!(tell(CanFrame::remote(id, 4).unwrap()), "< rtr 012 23.424242 4 >");
    let fd = FdFrame::new(id, &[1; 12]).unwrap().into();
    let words = dialogue.tell(time, &fd).unwrap();
    assert_eq!(words, "< error this protocol cannot tell the frames of CAN FD here >");
    assert_eq!(dialogue.tell(time, &fd), None, "it is said once");
}

#[test]
fn subscriptions_choose_frames_until_raw_mode() {
    let mut dialogue = Dialogue::default();
    hear(&mut dialogue, "< open can0 >");
    let [one, two] = [1, 2].map(|raw| CanFrame::data(standard(raw).unwrap(), &[]).unwrap());
    let hears =
        |dialogue: &mut Dialogue| [one, two].map(|f| dialogue.tell(Nanos(1), &f.into()).is_some());
    assert_eq!(hears(&mut dialogue), [false, false]);
    assert_eq!(hear(&mut dialogue, "< subscribe 0 0 1 >< subscribe 0 0 1 >"), []);
    assert_eq!(hears(&mut dialogue), [true, false]);
    assert_eq!(hear(&mut dialogue, "< unsubscribe 1 >"), []);
    assert_eq!(hears(&mut dialogue), [false, false]);
    hear(&mut dialogue, "< rawmode >");
    assert_eq!(hears(&mut dialogue), [true, true]);
    hear(&mut dialogue, "< bcmmode >");
    for id in 0..SUBSCRIPTIONS_MAX {
        assert_eq!(hear(&mut dialogue, &format!("< subscribe 0 0 {id:08X} >")), []);
    }
    let full = hear(&mut dialogue, "< subscribe 0 0 7 >");
    assert_eq!(full, [answer("< error too many subscriptions >")]);
}

#[test]
fn refusals_say_what_is_wrong() {
    let refused = [
        ("< send 800 0 >", "an identifier of 3 digits is at most 7FF"),
        ("< send 20000000 0 >", "an identifier of 8 digits is at most 1FFFFFFF"),
        ("< send 1234 0 >", "an identifier has up to 3 hexadecimal digits, or 8"),
        ("< send +12 0 >", "an identifier has up to 3 hexadecimal digits, or 8"),
        ("< send 123 9 >", "a length is a digit 0 to 8"),
        ("< send 123 2 1 >", "there must be as many bytes as the length says"),
        ("< send 123 1 100 >", "a byte has 1 or 2 digits"),
        ("< send >", "send ID LENGTH BYTES is expected"),
        ("< sendrtr 1 >", "sendrtr ID LENGTH is expected"),
        ("< subscribe 1 0 1 >", "an interval must be 0 0: every frame is told"),
        ("< subscribe 0 0 1 >", "raw mode hears every frame already"),
        ("< subscribe 1 >", "subscribe 0 0 ID is expected"),
        ("< open can0 >", "a bus is open already"),
        ("< statistics 0 >", "unknown command"),
        ("<>", "unknown command"),
    ];
    let mut dialogue = raw();
    for (command, why) in refused {
        let wanted = [answer(&format!("< error {why} >"))];
        assert_eq!(hear(&mut dialogue, command), wanted, "{command}");
    }
    assert_eq!(
        hear(&mut Dialogue::default(), "< send 1 0 >"),
        [answer("< error open a bus first >")]
    );
}

#[test]
fn a_client_that_cannot_be_understood_is_sent_away() {
    let long = format!("< {}", "x".repeat(COMMAND_MAX));
    for (text, why) in [
        ("< open can1 >", "there is no bus can1"),
        ("GET / HTTP/1.1", "a command begins with an opening bracket"),
        ("< echo < echo >", "a command ends with a closing bracket"),
        (&long, "the command is too long"),
    ] {
        let mut dialogue = Dialogue::default();
        let closed = [Reaction::Close(format!("< error {why} >"))];
        assert_eq!(hear(&mut dialogue, text), closed, "{text}");
        assert_eq!(hear(&mut dialogue, "< echo >"), [], "nothing follows");
    }
}

#[test]
fn whatever_is_sent_arrives_and_no_noise_panics() {
    let mut random = Random::new(11);
    let symbols = b"<> \nsendrtropabscubm0123456789ABCDEFx";
    let mut noisy = raw();
    for _ in 0..20_000 {
        let frame = random.frame();
        let (id, code) = (frame.raw_id(), frame.code().min(8));
        let id = if frame.is_extended() { format!("{id:08X}") } else { format!("{id:03X}") };
        let data: String = frame.bytes().iter().map(|byte| format!(" {byte:x}")).collect();
        let (word, data) = if frame.is_remote() { ("sendrtr", "") } else { ("send", &*data) };
        let command = format!("< {word} {id} {code}{data} >");
        let [Reaction::Send(sent)] = hear(&mut raw(), &command)[..] else { panic!("{command}") };
        assert_eq!((sent.id(), sent.is_remote()), (frame.id(), frame.is_remote()));
        assert_eq!((sent.bytes(), sent.code()), (frame.bytes(), code));
        // A command with a few symbols changed is obeyed or refused, and a client stays usable
        // unless it was sent away.
        let mut damaged = command.into_bytes();
        for _ in 0..random.between(1, 4) {
            let at = random.below(damaged.len() as u64) as usize;
            damaged[at] = symbols[random.below(symbols.len() as u64) as usize];
        }
        let mut reactions = Vec::new();
        noisy.hear(&damaged, &buses(), &mut reactions);
        if reactions.iter().any(|reaction| matches!(reaction, Reaction::Close(_))) {
            noisy = raw();
        }
    }
}
