//! The rules of `[[tpipe]]`: what follows from one, and what cannot be one.

use crate::common::{built, refused, told};
use diapason_abi::Nanos;
use diapason_abi::pipe::{ENVELOPES, Envelope, OUT_BYTES, REPORT_BYTES};
use diapason_system::{Tpipe, parse};

/// A USB server `usbd` with an interface `can`, a process `r` with three threads, a pipe from
/// channel 0, and more tables; those begin in line 37.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"usbd\"\npriority = 1\n\
         uses = [\"xhci\", \"usb-tune\"]\n\
         [[process]]\nname = \"r\"\npriority = 1\nvcpu = \"v\"\nthreads = 3\n\
         [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
         [[vcpu]]\nname = \"usb-tune\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[usb]]\nname = \"can\"\non = \"xhci\"\nmodel = \"usb-can\"\n\
         [[pipe]]\nname = \"p\"\nfrom = \"can\"\nreader = \"r\"\nrate = 500\nburst = 4\n\
         [[pipe]]\nname = \"out\"\nto = \"can\"\nchannel = 3\nwriter = \"r\"\nrate = 500\n\
         {tables}\n"
    )
}

/// The line before those of the tables.
const BEFORE: usize = 39;

/// Returns the lines of a place: 1 the header, 2 name, 3 from, 4 reader, 5 channels, 6 rate, 7
/// burst, 8 budget, 9 period.
fn tpipe(name: &str) -> String {
    format!(
        "[[tpipe]]\nname = \"{name}\"\nfrom = \"can\"\nreader = \"r\"\nchannels = [0, 4]\n\
         rate = 400\nburst = 3\nbudget = \"300us\"\nperiod = \"5ms\"\n"
    )
}

#[track_caller]
fn bad([from, to]: [&str; 2], (line, column): (usize, usize), title: &str, help: &str) {
    let tables = tpipe("t");
    assert!(tables.contains(from), "{from}");
    refused(&system(&tables.replace(from, to)), (BEFORE + line, column), title, help);
}

#[test]
fn a_place_says_what_its_parts_would() {
    let placed = parse("f", &system(&tpipe("t"))).unwrap();
    let parts = "[[segment]]\nname = \"tpipe0\"\nsize = \"12K\"\n\
                 [[semaphore]]\nname = \"tpipe0.ready\"\nkind = \"counting\"\n\
                 [[mailbox]]\nname = \"tpipe0.ask\"\nmessages = 2\n\
                 [[mailbox]]\nname = \"tpipe0.answer\"\nmessages = 2\n\
                 [[vcpu]]\nname = \"tpipe0.vcpu\"\nbudget = \"20us\"\nperiod = \"20ms\"";
    let place = [".ask", ".answer", ".ready", ".vcpu", ""].map(|what| format!("\"tpipe0{what}\""));
    let place = place.join(", ");
    let spelt_out = system(parts)
        .replace("uses = [\"xhci\", ", &format!("uses = [{place}, \"xhci\", "))
        .replace("threads = 3\n", &format!("threads = 3\nuses = [{place}]\n"));
    let spelt_out = parse("f", &spelt_out).unwrap();
    let mut same = placed.clone();
    same.processes[0].settings = spelt_out.processes[0].settings.clone();
    // Objects of a kind are in the order of their declarations; what pipes need comes behind.
    let named = |system: &diapason_system::System| {
        let mut all: Vec<String> = system.semaphores.iter().map(|it| format!("{it:?}")).collect();
        all.extend(system.mailboxes.iter().map(|it| format!("{it:?}")));
        all.extend(system.segments.iter().map(|it| format!("{it:?}")));
        all.extend(system.vcpus.iter().map(|it| format!("{it:?}")));
        all.sort();
        all
    };
    assert_eq!(named(&same), named(&spelt_out));
}

#[test]
fn every_key_arrives_and_is_told_to_the_server() {
    let two = tpipe("t") + &tpipe("u").replace("[0, 4]", "[1]").replace("burst = 3\n", "");
    let system = parse("f", &system(&two)).unwrap();
    let envelope = Envelope {
        channels: 0b1_0001,
        to: 0,
        rate: 400,
        burst: 3,
        budget: Nanos::from_micros(300),
        period: Nanos::from_millis(5),
    };
    let expected = Tpipe { name: "t".to_owned(), usb: 0, server: 0, process: 1, vcpu: 2, envelope };
    assert_eq!(system.tpipes[0], expected);
    let other = Envelope { channels: 0b10, burst: 1, ..envelope };
    let settings = told(&built(&system).unwrap(), 0);
    assert!(Envelope::all(settings.get(ENVELOPES)).eq([envelope, other]));
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let title = "no USB device is called `cam`";
    let twice = parse("f", &system(&tpipe("t").replace("\"can\"", "\"cam\""))).unwrap_err();
    assert_eq!((twice.items()[0].title, twice.items()[0].line), (title, BEFORE + 3));
    let help = "it has 5: write `channel = 0` to `channel = 4`";
    bad(["[0, 4]", "[0, 5]"], (5, 16), "`can` has no channel 5", help);
    let title = "no process named `q` is declared";
    let help = "declare it: `[[process]]` with `name = \"q\"`";
    bad(["\"r\"", "\"q\""], (4, 10), title, help);
    let help = "write a time from 20 us to 20 ms";
    let found = parse("f", &system(&tpipe("t").replace("300us", "3us"))).unwrap_err();
    assert_eq!(found.items()[0].line, BEFORE + 8, "{found} {help}");
    let title = "the budget of `t` exceeds its period";
    bad(["5ms", "200us"], (8, 10), title, "make it at most the period");
    let help = "add `budget = \"400us\"`: the most that its thread may have in every period";
    bad(["budget = \"300us\"\n", ""], (2, 8), "tuned pipe `t` has no `budget`", help);
    let help = "add `channels = [0]`: those it may listen, or write, to";
    bad(["channels = [0, 4]\n", ""], (2, 8), "tuned pipe `t` has no `channels`", help);
}

#[test]
fn a_channel_with_a_pipe_has_its_contract() {
    let title = "501 messages a second of channel 0, but `p` says 500";
    let help = "write `rate = 500` here, or `rate = 501` there";
    bad(["rate = 400", "rate = 501"], (6, 8), title, help);
    let title = "5 messages at once of channel 0, but `p` says 4";
    let help = "write `burst = 4` here, or `burst = 5` there";
    bad(["burst = 3", "burst = 5"], (7, 9), title, help);
    let title = "channel 3 has a pipe to the device, `out`";
    let help = "leave it out of `channels`: its client opens it";
    bad(["[0, 4]", "[3]"], (5, 13), title, help);
    let slow = system(&tpipe("t")).replace("rate = 500", "period = \"41ms\"");
    let found = parse("f", &slow).unwrap_err();
    let title = "400 messages a second of channel 0, but `p` says 24";
    assert_eq!(found.items()[0].title, title, "what comes every 41 ms comes 24.4 times");
    // Where no pipe is, the most is the place's own.
    parse("f", &system(&tpipe("t").replace("[0, 4]", "[4]").replace("400", "3200"))).unwrap();
}

/// A place to the device, and one through the process to the device.
#[test]
fn a_place_may_write() {
    let serves = |tables: &str| {
        let sends = "[[vcpu]]\nname = \"usb-send\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n";
        let with = system(&(tables.to_owned() + sends));
        with.replace("\"usb-tune\"]", "\"usb-tune\", \"usb-send\"]")
    };
    let to = |name: &str, channels: &str| {
        let ways = tpipe(name).replace("from = \"can\"\nreader", "to = \"can\"\nwriter");
        ways.replace("[0, 4]", channels)
    };
    let through = tpipe("u").replace("[0, 4]\n", "[0]\nonward = [2]\n");
    let placed = parse("f", &serves(&(to("t", "[1, 4]") + &through))).unwrap();
    let ways =
        |place: usize| (placed.tpipes[place].envelope.channels, placed.tpipes[place].envelope.to);
    assert_eq!((ways(0), ways(1)), ((0, 0b1_0010), (1, 0b100)));
    for place in ["tpipe0", "tpipe1"] {
        for (what, size) in [(".out", OUT_BYTES), (".report", REPORT_BYTES)] {
            let name = format!("{place}{what}");
            let found = placed.segments.iter().find(|segment| segment.name == name).unwrap();
            assert_eq!(found.size, size, "{name}");
        }
    }
    let wrong =
        |tables: &str, at, title: &str, help: &str| refused(&serves(tables), at, title, help);
    let title = "channel 3 may be written, and has another pipe";
    let help = "give each a channel of its own";
    wrong(&to("t", "[3]"), (BEFORE + 5, 13), title, help);
    let both = to("t", "[1]") + &tpipe("u").replace("[0, 4]", "[1]");
    wrong(&both, (BEFORE + 5, 13), "channel 1 may be written, and has another pipe", help);
    let twice = tpipe("t").replace("[0, 4]\n", "[4]\nonward = [4]\n");
    wrong(&twice, (BEFORE + 6, 11), "channel 4 may be written, and has another pipe", help);
    let help = "it has 5: write `channel = 0` to `channel = 4`";
    wrong(&to("t", "[5]"), (BEFORE + 5, 13), "`can` has no channel 5", help);
    let silent = system(&to("t", "[1]"));
    let help = "declare a `[[vcpu]]` named `usb-send` and add it to its `uses`";
    refused(&silent, (BEFORE + 3, 6), "`usbd` has no VCPU to send on", help);
}

#[test]
fn a_place_needs_threads_and_somebody_who_answers() {
    let title = "`r` has 3 threads, too few for its tuned pipes";
    let help = "write `threads = 4`: each pipe has one, beside the first";
    let three = ["t", "u", "w"].map(tpipe).concat();
    let found = parse("f", &system(&three)).unwrap_err();
    assert!(found.items().iter().all(|item| (item.title, item.help) == (title, help)), "{found}");
    let many = ["a", "b", "c", "d", "e", "f"].map(tpipe).concat();
    let many = system(&many).replace("threads = 3", "threads = 7");
    let help = "let programs close the ones they do not need";
    refused(&many, (BEFORE + 5 * 9 + 2, 8), "6 tuned pipes, the most is 5", help);
    let unanswered = system(&tpipe("t")).replace("[\"xhci\", \"usb-tune\"]", "[\"xhci\"]");
    let title = "`usbd` has no VCPU to decide about pipes on";
    let help = "declare a `[[vcpu]]` named `usb-tune` and add it to its `uses`";
    refused(&unanswered, (BEFORE + 3, 8), title, help);
}

/// A bill counts the period of whom a bottom half serves, and that of a closed pipe is 20 ms.
#[test]
fn no_bottom_half_serves_a_tuned_pipe() {
    let io = |name: &str| {
        format!(
            "[[vcpu]]\nname = \"other\"\nkind = \"io\"\nutilization = \"5%\"\n\
             interval = \"1ms\"\nserves = [\"{name}\"]\n"
        )
    };
    let place = tpipe("t");
    let title = "`tpipe0.vcpu` is served, and its period changes while the system runs";
    let line = BEFORE + place.lines().count() + 6;
    let help = "name another VCPU: a thread of the server, or the reader of a `[[pipe]]`";
    refused(&system(&(place.clone() + &io("tpipe0.vcpu"))), (line, 11), title, help);
    assert!(parse("f", &system(&(place + &io("v")))).is_ok());
}
