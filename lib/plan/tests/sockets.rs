//! The bill of a UDP socket, and ways in which a description could make it lie.

use diapason_abi::Nanos;
use diapason_contract::ethernet::{WATCH_SETTING, WatchTerms};
use diapason_pipe::bill::What;
use diapason_plan::{AssumedVcpu, Plan, Verdict, sockets::Socketed};
use diapason_system::{Diagnostics, parse};

/// Two adapters, a control program and a drive, and a task that never stops.
const UDP: &str = include_str!("../../../examples/udp.toml");

fn planned(changes: &[(&str, &str)]) -> Plan {
    let mut text = UDP.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("udp.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// Returns the bound of the first socket after these changes.
fn bound(changes: &[(&str, &str)]) -> Nanos {
    planned(changes).sockets[0].bill().expect("it has a bill").total
}

/// Returns what is refused after these changes.
fn refused(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds(), "{changes:?}");
    let title = |found: &Diagnostics| found.items()[0].title.to_owned();
    plan.findings.iter().map(title).collect::<Vec<_>>().join("; ")
}

const OF_CONTROL: &str = "period = \"1ms\"\nbytes = 64\nwork = \"20us\"\nlatency = \"10ms\"";

#[test]
fn a_datagram_is_billed_stage_by_stage() {
    let plan = planned(&[]);
    assert!(plan.holds(), "{:?}", plan.findings);
    for socketed in &plan.sockets {
        let bill = socketed.bill().unwrap();
        let sum: u64 = bill.items().iter().map(|item| item.value.0).sum();
        assert_eq!(sum, bill.total.0);
        assert_eq!(bill.value(What::Bus), Nanos(12_304), "the longest frame of anybody");
        assert_eq!(bill.value(What::Moderation), Nanos::from_micros(220));
        assert!(bill.slots <= 16);
    }
}

#[test]
fn more_of_anything_is_a_longer_bound() {
    let usual = bound(&[]);
    assert!(bound(&[("rate = 2000", "rate = 2000\nspeed = 100")]) > usual);
    assert!(bound(&[("rate = 2000", "rate = 2000\nburst = 20")]) > usual);
    let interval = "irqs = 1\ninterval = \"200us\"";
    let longer = "irqs = 1\ninterval = \"300us\"";
    assert!(bound(&[(interval, longer)]) > usual);
    assert!(bound(&[(OF_CONTROL, "period = \"1ms\"\nwork = \"40us\"")]) > usual);
}

#[test]
fn what_is_not_bounded_is_refused() {
    for (changes, title) in [
        (&[("rate = 2000", "")][..], "nothing says how many frames come to `nic0`"),
        (
            &[("name = \"netd.receive.frame\"", "name = \"other\"")],
            "nothing says how long `netd.receive.frame` takes",
        ),
        (
            &[("serves = [\"control-cpu\"]", "serves = [\"spin\"]")],
            "the I/O VCPU `nic0.receive` does not serve `control`",
        ),
        (
            &[(
                "interval = \"200us\"\nserves = [\"control-cpu\"]",
                "interval = \"900us\"\nserves = [\"control-cpu\"]",
            )],
            "`nic0.receive` is woken more often than its `interval` says",
        ),
        (
            &[("priority = 20\nvcpu = \"spin\"", "priority = 20\nvcpu = \"control-cpu\"")],
            "`control` shares its VCPU with another process",
        ),
        (
            &[("process = \"drive\"", "process = \"control\"")],
            "`control` reads more than this socket, which no bill counts",
        ),
        (
            &[("uses = [\"progress\"]", "uses = [\"progress\", \"nic0.receive\"]")],
            "may put threads on `nic0.receive`, a VCPU of `net0`",
        ),
        (
            &[("[[work]]  ", "[[work]]\nname = \"socket.take\"\nworst = \"29us\"\n[[work]]  ")],
            "the work `socket.take` takes up to 29.000 us",
        ),
    ] {
        let found = refused(changes);
        assert!(found.contains(title), "{found}");
    }
}

#[test]
fn too_few_buffers_are_refused() {
    let found = refused(&[(OF_CONTROL, "period = \"1ms\"\nwork = \"20us\"\nburst = 3\nquota = 2")]);
    assert!(found.contains("frames may wait for `control`, and its quota is 2"), "{found}");
    let found = refused(&[("rate = 2000", "rate = 2000\nburst = 70")]);
    assert!(found.contains("`control` may lose frames"), "{found}");
    // The wire at its full rate: no thread keeps up.
    let found = refused(&[("rate = 2000", "rate = 1488095")]);
    assert!(found.contains("`control`"), "{found}");
}

#[test]
fn a_wanted_latency_is_held_against_the_bound() {
    let total = bound(&[]).0;
    let wanted = |ns: u64| format!("period = \"1ms\"\nwork = \"20us\"\nlatency = \"{ns}ns\"");
    assert!(planned(&[(OF_CONTROL, &wanted(total))]).holds());
    let found = refused(&[(OF_CONTROL, &wanted(total - 1))]);
    assert!(found.contains("datagrams of `control` may take"), "{found}");
    let found = refused(&[(OF_CONTROL, "latency = \"9ms\"")]);
    assert!(found.contains("`control` has a `latency` and nothing bounds its traffic"), "{found}");
}

#[test]
fn nothing_is_promised_of_a_socket_without_a_period() {
    let plan = planned(&[(OF_CONTROL, "bytes = 64")]);
    assert!(matches!(plan.sockets[0], Socketed::Unpromised));
    assert_eq!(plan.verdict(), Verdict::Holds);
}

/// The wake-ups and the lists of both ends of a socket are watched, as for a pipe.
#[test]
fn both_ends_of_a_bill_are_relied_on() {
    let plan = planned(&[]);
    let system = plan.system();
    let assumed = plan.assumed();
    let of = |name: &str| {
        let place = system.vcpus.iter().position(|vcpu| vcpu.name == name).unwrap();
        &assumed.vcpus[place]
    };
    for name in ["control-cpu", "drive-cpu"] {
        assert!(matches!(of(name), AssumedVcpu::Main { relied: true, .. }), "{name}");
    }
    for name in ["nic0.receive", "nic1.receive"] {
        assert!(matches!(of(name), AssumedVcpu::Io { relied: true, .. }), "{name}");
    }
    assert!(matches!(of("spin"), AssumedVcpu::Main { relied: false, .. }));
    let unpromised = planned(&[(OF_CONTROL, "bytes = 64")]).assumed();
    let place = system.vcpus.iter().position(|vcpu| vcpu.name == "nic0.receive").unwrap();
    assert!(matches!(unpromised.vcpus[place], AssumedVcpu::Io { relied: false, .. }));
}

/// The servers are told the contracts that bills rely on, and nothing else.
#[test]
fn servers_watch_what_bills_rely_on() {
    let told = |changes| {
        let plan = planned(changes);
        let before =
            |socket: usize| plan.sockets[socket].bill().map(|bill| bill.before(What::User));
        let before = [before(0), before(1)];
        let cleared = plan.clear().unwrap();
        let words = |name: &str| {
            let all = &cleared.system().processes;
            let process = all.iter().find(|process| process.name == name).unwrap();
            WatchTerms::all(process.setting(WATCH_SETTING)).collect::<Vec<_>>()
        };
        ([words("net0"), words("net1")], before)
    };
    let ([first, second], [Some(before), Some(_)]) = told(&[]) else { panic!("two bills") };
    let adapter = WatchTerms {
        socket: None,
        burst: 1,
        messages: 2_000,
        per_ns: 1_000_000_000,
        jitter_ns: before.0,
    };
    let socket = WatchTerms { socket: Some(0), messages: 1, per_ns: 1_000_000, ..adapter };
    assert_eq!(first, [adapter, socket]);
    assert_eq!(second.len(), 2);
    let ([none, both], _) = told(&[(OF_CONTROL, "bytes = 64")]);
    assert_eq!((none.len(), both.len()), (0, 2));
}

/// A USB network device with two sockets.
const USB: &str = include_str!("../../../examples/udp-usb.toml");

fn of_usb(changes: &[(&str, &str)]) -> Plan {
    let mut text = USB.to_owned();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    let system = parse("udp-usb.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    Plan::of(&system)
}

/// The bill of a socket has all of the pipe's, whose reader is the thread between, and then the
/// program's own part.
#[test]
fn a_socket_of_a_usb_device_is_the_end_of_its_pipe() {
    let plan = of_usb(&[]);
    assert!(plan.holds(), "{:?}", plan.findings);
    let pipe = *plan.pipes[0].bill.as_ref().expect("it has a bill");
    for socketed in &plan.sockets {
        let bill = socketed.bill().expect("it has a bill");
        assert_eq!(bill.value(What::Driver), pipe.value(What::User));
        assert_eq!(bill.before(What::User), pipe.total);
        assert_eq!(bill.items().iter().map(|item| item.value.0).sum::<u64>(), bill.total.0);
    }
    let total = |plan: &Plan, socket: usize| plan.sockets[socket].bill().expect("a bill").total;
    let usual = [0, 1].map(|socket| total(&plan, socket));
    let of_drive = "bytes = 214\nwork = \"20us\"";
    let longer = of_usb(&[(of_drive, "bytes = 214\nwork = \"50us\"")]);
    assert!(total(&longer, 0) > usual[0] && total(&longer, 1) == usual[1], "its own program");
    let bursts = of_usb(&[("stamp = 50", "burst = 2\nstamp = 50")]);
    assert!([0, 1].iter().all(|socket| total(&bursts, *socket) > usual[*socket]), "all frames");
}

#[test]
fn a_socket_of_a_usb_device_is_as_its_model_and_has_a_budget() {
    let refused = |changes: &[(&str, &str)]| {
        let plan = of_usb(changes);
        assert!(!plan.holds(), "{changes:?}");
        let words = |found: &Diagnostics| {
            found.items().iter().map(|it| format!("{}: {}", it.title, it.help)).collect::<String>()
        };
        plan.findings.iter().map(words).collect::<Vec<_>>().join("; ")
    };
    for (changes, words) in [
        (&[("40:54:00:12:34:56", "40:54:00:12:34:58")][..], "mac = \"40:54:00:12:34:56\""),
        (&[("period = \"4ms\"\nbytes", "period = \"5ms\"\nbytes")], "period = \"4000000ns\""),
        (&[("bytes = 214", "bytes = 200")], "write at least `bytes = 214`"),
        (&[("vcpu = \"recorder-cpu\"", "vcpu = \"drive-cpu\"")], "shares its VCPU"),
        (&[("vcpu = \"drive-cpu\"", "")], "`drive` has no VCPU"),
        (&[("arguments = [0]\n", "start = \"manual\"\n")], "runs only when another process starts"),
        (&[("latency = \"8ms\"\npeer", "latency = \"4ms\"\npeer")], "may take"),
        (&[("port = 5000\n", "port = 5000\nquota = 1\nburst = 3\n")], "its quota is 1"),
        (
            &[("reader = \"net-in\"\nperiod = \"2ms\"", "reader = \"net-in\"\nperiod = \"3ms\"")],
            "`comes` has a message every",
        ),
    ] {
        let found = refused(changes);
        assert!(found.contains(words), "{words}: {found}");
    }
}

/// The thread that sorts reports on its sockets besides its pipe, and wakes their programs: that
/// takes budget of its own.
#[test]
fn the_reader_of_a_usb_device_does_more_than_that_of_a_pipe() {
    let plan = of_usb(&[]);
    let start = USB.find("[[adapter]]").expect("an adapter");
    let end = USB.find("# The pipes of the network device").expect("its pipes");
    let without = format!("{}{}", &USB[..start], &USB[end..]);
    let without = without.replace("program = \"netd\"", "program = \"frame-pipe\"");
    let plain = Plan::of(&parse("f", &without).unwrap_or_else(|wrong| panic!("{wrong}")));
    let user = |plan: &Plan| plan.pipes[0].bill.as_ref().expect("a bill").value(What::User);
    assert!(user(&plan) > user(&plain), "{} {}", user(&plan), user(&plain));
    let third = "[[socket]]\nname = \"third\"\nadapter = \"nic0\"\nprocess = \"supervisor\"\n\
                 port = 7000\n\n[[process]]\nname = \"drive\"";
    let more = of_usb(&[("[[process]]\nname = \"drive\"", third)]);
    assert!(user(&more) > user(&plan), "{} {}", user(&more), user(&plan));
}
