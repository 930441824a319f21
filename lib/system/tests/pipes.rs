//! The rules of `[[pipe]]`: what follows from one, and what cannot be one.

use crate::common::{built, refused, told};
use diapason_abi::Nanos;
use diapason_abi::settings::Settings;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts, PER_MAX};
use diapason_contract::settings::CLIENTS;
use diapason_contract::source::MessageShape;
use diapason_system::{PipeDirection, PipeEnd, PipeSpec, parse};

/// A USB server `usbd` with an interface `can`, a reader `r` with a VCPU, one without (`bare`), and
/// more tables; those begin in line 27.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"usbd\"\npriority = 1\nuses = [\"xhci\"]\n\
         [[process]]\nname = \"r\"\npriority = 1\nvcpu = \"v\"\n\
         [[process]]\nname = \"bare\"\npriority = 1\n\
         [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[usb]]\nname = \"can\"\non = \"xhci\"\nmodel = \"usb-can\"\n{tables}\n"
    )
}

/// Returns the lines of a pipe: 1 the header, 2 name, 3 from, 4 channel, 5 reader, 6 rate, 7 more.
fn pipe([from, channel, reader]: [&str; 3], more: &str) -> String {
    format!(
        "[[pipe]]\nname = \"p{channel}\"\nfrom = \"{from}\"\nchannel = {channel}\n\
         reader = \"{reader}\"\nrate = 3000\n{more}\n"
    )
}

#[track_caller]
fn bad(tables: &str, (line, column): (usize, usize), title: &str, help: &str) {
    refused(&system(tables), (25 + line, column), title, help);
}

#[test]
fn a_pipe_says_what_the_parts_would() {
    let piped = parse("f", &system(&pipe(["can", "2", "r"], ""))).unwrap();
    let spelt_out = system(
        "[[segment]]\nname = \"can2\"\nsize = \"12K\"\n\
         [[semaphore]]\nname = \"can2.ready\"\nkind = \"counting\"",
    );
    let ends = "\"can2\", \"can2.ready\"]\n";
    let spelt_out = spelt_out
        .replace("uses = [\"xhci\"]\n", &format!("uses = [\"xhci\", {ends}"))
        .replace("vcpu = \"v\"\n[[process]]", &format!("vcpu = \"v\"\nuses = [{ends}[[process]]"));
    let spelt_out = parse("f", &spelt_out).unwrap();
    let mut untold = piped.clone();
    untold.pipes.clear();
    assert_eq!(built(&untold).unwrap(), built(&spelt_out).unwrap());
}

/// The server measures what comes: it is told what may.
#[test]
fn the_server_is_told_what_its_pipes_carry() {
    let both = pipe(["can", "2", "r"], "burst = 7\njitter = \"2us\"")
        + &output(["can", "3", "r"])
        + &pipe(["can", "0", "r"], "");
    let mut parsed = parse("f", &system(&both)).unwrap();
    let archive = built(&parsed).unwrap();
    let every = |messages, burst, jitter| {
        Some(Contract { messages, per: PER_MAX, burst, jitter: Nanos(jitter) })
    };
    let contract = |burst, jitter| every(3_000, burst, jitter);
    let mut contracts = Contracts::default();
    (contracts.0[0], contracts.0[2]) = (contract(1, 0), contract(7, 2_000));
    assert_eq!(Contracts::of(told(&archive, 0).get(CONTRACTS)), contracts);
    assert_eq!(told(&archive, 0).get(CLIENTS), [3]);
    assert_eq!(told(&archive, 1), Settings::NONE);
    // Tools change pipes.
    parsed.pipes[0].rate = 5;
    let changed = Contracts::of(told(&built(&parsed).unwrap(), 0).get(CONTRACTS));
    assert_eq!(changed.0[2], every(5, 7, 2_000));
}

/// Returns the lines of a pipe to a device: 1 the header, 2 name, 3 to, 4 channel, 5 writer, 6
/// rate.
fn output([to, channel, writer]: [&str; 3]) -> String {
    pipe([to, channel, writer], "").replace("from =", "to =").replace("reader =", "writer =")
}

#[test]
fn a_pipe_to_a_device_says_what_its_parts_would() {
    let piped = parse("f", &system(&output(["can", "3", "r"]))).unwrap();
    let spelt_out = system(
        "[[segment]]\nname = \"can3\"\nsize = \"12K\"\n\
         [[segment]]\nname = \"can3.out\"\nsize = \"4K\"\n\
         [[segment]]\nname = \"can3.report\"\nsize = \"8K\"\n\
         [[mailbox]]\nname = \"can3.control\"\nmessages = 4\n\
         [[semaphore]]\nname = \"can3.ready\"\nkind = \"counting\"",
    );
    let ends = "\"can3\", \"can3.ready\", \"can3.out\", \"can3.report\", \"can3.control\"]\n";
    let server = format!("uses = [\"xhci\", {ends}");
    let spelt_out = spelt_out
        .replace("uses = [\"xhci\"]\n", &server)
        .replace("vcpu = \"v\"\n[[process]]", &format!("vcpu = \"v\"\nuses = [{ends}[[process]]"));
    let mut spelt_out = parse("f", &spelt_out).unwrap();
    spelt_out.processes[0].set(CLIENTS, &[3]);
    assert_eq!(built(&piped).unwrap(), built(&spelt_out).unwrap());
    assert_eq!(
        (piped.pipes[0].way, piped.pipes[0].end),
        (PipeDirection::ToDevice, PipeEnd::Here(1))
    );
}

#[test]
fn a_pipe_to_a_device_has_its_own_words() {
    let title = "`bare` writes a pipe and has no VCPU";
    let help = "add `vcpu = \"…\"` to the process: without one no time is promised to it";
    bad(&output(["can", "0", "bare"]), (5, 10), title, help);
    let without = "[[pipe]]\nname = \"p\"\nto = \"can\"\nrate = 1";
    let help = "add `writer = \"…\"`: the `[[process]]` that writes them";
    bad(without, (2, 8), "pipe `p` has no `writer`", help);
    let both = output(["can", "0", "r"]).replace("rate", "from = \"can\"\nrate");
    let found = parse("f", &system(&both)).unwrap_err();
    assert!(found.items()[0].title.contains("`from`"), "{found:?}");
    let two = format!("{}{}", output(["can", "1", "r"]), pipe(["can", "1", "r"], ""));
    let found = parse("f", &system(&two)).unwrap_err();
    let items = found.items();
    assert!(items.iter().any(|item| item.title == "channel 1 has two pipes"), "{found:?}");
}

#[test]
fn every_key_arrives() {
    let more = "burst = 3\njitter = \"2ms\"\nwork = \"4us\"\nlatency = \"30ms\"";
    let system = parse("f", &system(&pipe(["can", "4", "r"], more))).unwrap();
    let expected = PipeSpec {
        name: "p4".to_owned(),
        usb: 0,
        channel: 4,
        number: 4,
        server: 0,
        way: PipeDirection::FromDevice,
        end: PipeEnd::Here(1),
        rate: 3_000,
        period_ns: None,
        shape: MessageShape::default(),
        endpoint: 0,
        burst: 3,
        jitter_ns: 2_000_000,
        work_ns: Some(4_000),
        latency_ns: Some(30_000_000),
        sent_on: None,
        ends_flow: false,
    };
    assert_eq!(system.pipes, [expected]);
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let title = "no USB device is called `cam`";
    bad(&pipe(["cam", "0", "r"], ""), (3, 8), title, "did you mean `can`?");
    let title = "`can` has no channel 5";
    let help = "it has 5: write `channel = 0` to `channel = 4`";
    bad(&pipe(["can", "5", "r"], ""), (4, 11), title, help);
    let title = "`bare` reads a pipe and has no VCPU";
    let help = "add `vcpu = \"…\"` to the process: without one no time is promised to it";
    bad(&pipe(["can", "0", "bare"], ""), (5, 10), title, help);
    let title = "no process named `reader` is declared";
    let help = "declare it: `[[process]]` with `name = \"reader\"`";
    bad(&pipe(["can", "0", "reader"], ""), (5, 10), title, help);
    let adapter = "[[usb]]\nname = \"s\"\non = \"xhci\"\nport = 2\nmodel = \"busy-camera\"\n";
    let title = "`s` has no channel that a pipe could carry";
    let help = "models with pipes are `usb-can`, `gs-usb`, `sensor`, `camera`, `keyboard`, \
                `disk`, `superspeed-disk`, `network`, `instrument`, `actuator`, `servo`; other \
                devices are read otherwise";
    bad(&format!("{adapter}{}", pipe(["s", "0", "r"], "")), (8, 8), title, help);
    let without = "[[pipe]]\nname = \"p\"\nfrom = \"can\"\nreader = \"r\"";
    let help = "add `rate = 3000`: the most messages a second, in the long run";
    bad(without, (2, 8), "pipe `p` has no `rate`", help);
}

#[test]
fn a_channel_has_one_pipe_and_its_buffer_one_name() {
    let two = format!("{}{}", pipe(["can", "1", "r"], ""), pipe(["can", "1", "r"], ""));
    let found = parse("f", &system(&two)).unwrap_err();
    let items = found.items();
    let titles: Vec<&str> = items.iter().map(|item| item.title).collect();
    assert!(titles.contains(&"channel 1 has two pipes"), "{titles:?}");
    let taken =
        format!("[[segment]]\nname = \"can1\"\nsize = \"4K\"\n{}", pipe(["can", "1", "r"], ""));
    let found = parse("f", &system(&taken)).unwrap_err();
    assert!(found.items()[0].title.contains("`can1` is declared twice"), "{found:?}");
}

#[test]
fn somebody_has_to_serve_the_device() {
    let text = system(&pipe(["can", "0", "r"], "")).replace("uses = [\"xhci\"]\n", "\n");
    let help = "add `xhci` to the `uses` of the process that drives it";
    refused(&text, (28, 8), "nobody serves `can`", help);
}

#[test]
fn an_interface_behind_a_hub_is_served_by_who_drives_the_controller() {
    let hub = "[[usb]]\nname = \"hub\"\non = \"xhci\"\nmodel = \"hub\"\n";
    let text = system(&(hub.to_owned() + &pipe(["can", "0", "r"], "")));
    let text = text.replace("name = \"can\"\non = \"xhci\"", "name = \"can\"\nbehind = \"hub\"");
    let found = parse("f", &text).unwrap();
    assert_eq!(found.pipes[0].server, 0);
    let unused = text.replace("uses = [\"xhci\"]\n", "\n");
    let found = parse("f", &unused).unwrap_err();
    let item = &found.items()[0];
    assert_eq!(item.title, "nobody serves `can`");
    assert_eq!(item.help, "add `xhci` to the `uses` of the process that drives it");
}

#[test]
fn a_channel_has_one_pipe() {
    let two = pipe(["can", "2", "r"], "") + &pipe(["can", "2", "r"], "").replace("p2", "q");
    bad(&two, (11, 11), "channel 2 has two pipes", "give each a `channel` of its own");
}
