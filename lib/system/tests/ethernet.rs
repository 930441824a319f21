//! The rules of `[[adapter]]` and `[[socket]]`, and what follows from them.

use crate::common::{built, problems, told};
use diapason_abi::Key;
use diapason_contract::ethernet::{
    ADAPTER_SETTING, AdapterPart, AdapterTerms, BUFFERS_BYTES, OUT_BYTES, Peer, RINGS_BYTES,
    SOCKETS_SETTING, SocketTerms, inbox_bytes,
};
use diapason_random::Random;
use diapason_system::{System, parse};

const UDP: &str = include_str!("../../../examples/udp.toml");

/// Returns the titles of what is refused after one change.
fn refused(from: &str, to: &str) -> Vec<String> {
    assert!(UDP.contains(from), "{from}");
    let wrong = problems(&UDP.replacen(from, to, 1));
    wrong.items().iter().map(|item| item.title.to_owned()).collect()
}

#[track_caller]
fn bad(from: &str, to: &str, title: &str) {
    let titles = refused(from, to);
    assert!(titles.iter().any(|found| found == title), "{titles:?}");
}

fn system() -> System {
    parse("udp.toml", UDP).unwrap_or_else(|wrong| panic!("{wrong}"))
}

#[test]
fn segments_and_semaphores_follow_from_adapters_and_sockets() {
    let system = system();
    let index = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    let bits = |names: &[&str]| names.iter().fold(0, |bits, name| bits | 1 << index(name));
    for (name, size, dma, users) in [
        ("nic0.rings", RINGS_BYTES, true, &["net0"][..]),
        ("nic0.buffers", BUFFERS_BYTES, true, &["net0"]),
        ("socket0", inbox_bytes(16), false, &["net0", "control"]),
        ("socket0.out", OUT_BYTES, false, &["net0", "control"]),
        ("socket1", inbox_bytes(16), false, &["net1", "drive"]),
    ] {
        let segment = system.segments.iter().find(|it| it.name == name).unwrap();
        let found = (segment.size, segment.dma, segment.allowed);
        assert_eq!(found, (size, dma, bits(users)), "{name}");
    }
    for (name, users) in [
        ("nic0.send", &["net0", "control"]),
        ("nic1.send", &["net1", "drive"]),
        ("socket1.ready", &["net1", "drive"]),
    ] {
        let semaphore = system.semaphores.iter().find(|it| it.name == name).unwrap();
        assert_eq!(semaphore.allowed, bits(users), "{name}");
    }
}

#[test]
fn a_socket_that_only_receives_has_no_pipe_out() {
    let peer = "peer = \"10.0.0.1:4000\"\npeer_mac = \"02:00:00:00:00:01\"\n";
    assert!(UDP.contains(peer));
    let system = parse("udp.toml", &UDP.replacen(peer, "quota = 3\n", 1)).unwrap();
    assert!(!system.segments.iter().any(|it| it.name == "socket1.out"));
    assert_eq!((system.sockets[1].peer, system.sockets[1].quota), (None, 3));
    let semaphore = system.semaphores.iter().find(|it| it.name == "nic1.send").unwrap();
    assert_eq!(semaphore.allowed.count_ones(), 1, "its program may not ask to send");
}

#[test]
fn one_socket_of_an_adapter_gets_the_rest() {
    let rest = |name: &str| {
        format!(
            "[[socket]]\nname = \"{name}\"\nadapter = \"nic1\"\nprocess = \"task\"\nrest = true\n"
        )
    };
    let system = parse("udp.toml", &(UDP.to_owned() + &rest("others"))).unwrap();
    let socket = &system.sockets[2];
    assert!(socket.is_rest() && !system.sockets[1].is_rest());
    assert!(system.segments.iter().any(|it| it.name == "socket2.out"), "it sends");
    let wrong = problems(&(UDP.to_owned() + &rest("others") + &rest("more")));
    let title = "`more` has the name or `rest` of another socket";
    assert!(wrong.items().iter().any(|item| item.title == title), "{wrong:?}");
}

#[test]
fn both_ends_are_told_what_follows() {
    let system = system();
    let archive = built(&system).unwrap_or_else(|wrong| panic!("{wrong}"));
    let index = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    let of = |name: &str| told(&archive, index(name));
    let mac = [2, 0, 0, 0, 0, 2];
    let part = AdapterPart::Card { moderation_ns: 220_000 };
    let adapter = AdapterTerms { number: 1, mac, part };
    assert_eq!(of("net1").get(ADAPTER_SETTING), adapter.words());
    let peer = Peer { address: [10, 0, 0, 1], port: 4_000, mac: [2, 0, 0, 0, 0, 1] };
    let drive = SocketTerms {
        name: Key::new("drive"),
        number: 1,
        adapter: 1,
        real_time: true,
        priority: None,
        port: 5_000,
        address: [10, 0, 0, 2],
        mac: [2, 0, 0, 0, 0, 2],
        quota: 16,
        bytes: 64,
        peer: Some(peer),
        is_polled: false,
    };
    for process in ["net1", "drive"] {
        assert_eq!(of(process).get(SOCKETS_SETTING), drive.words(), "{process}");
    }
}

#[test]
fn mistakes_are_named() {
    bad(
        "address = \"10.0.0.1\"",
        "address = \"224.0.0.1\"",
        "`224.0.0.1` is not an IPv4 address of one host",
    );
    bad(
        "mac = \"02:00:00:00:00:01\"",
        "mac = \"03:00:00:00:00:01\"",
        "`03:00:00:00:00:01` is not an Ethernet address: six pairs of hexadecimal digits",
    );
    bad(
        "mac = \"02:00:00:00:00:01\"",
        "mac = \"2:0:0:0:0:1\"",
        "`2:0:0:0:0:1` is not an Ethernet address: six pairs of hexadecimal digits",
    );
    bad(
        "peer = \"10.0.0.2:5000\"",
        "peer = \"10.0.0.2:0\"",
        "`10.0.0.2:0` is not an IPv4 address of one host and a port",
    );
    bad("peer_mac = \"02:00:00:00:00:02\"", "", "`peer` without `peer_mac`");
    bad("peer = \"10.0.0.2:5000\"", "", "`peer_mac` without `peer`");
    let title = "a socket with `rest` has no `peer`: it gets frames, and no datagrams";
    bad("port = 4000", "rest = true", title);
    bad("rate = 2000", "burst = 2", "`burst` without `rate`");
    bad("rate = 2000", "speed = 40", "the adapter has no speed of 40 Mbit/s");
    bad("device = \"nic0\"", "device = \"card\"", "`card` cannot be the device of an adapter");
    bad("device = \"nic0\"", "device = \"nic3\"", "no device is called `nic3`");
    bad("device = \"nic0\"", "device = \"nic1\"", "`nic1` has two `[[adapter]]`");
    bad("adapter = \"nic0\"", "adapter = \"nic2\"", "`nic2` is no adapter");
    bad("process = \"control\"", "process = \"contrl\"", "no process named `contrl` is declared");
    bad(
        "name = \"drive\"\nadapter = \"nic1\"",
        "name = \"control\"\nadapter = \"nic1\"",
        "`control` has the name or the port of another socket",
    );
    bad("irqs = 1\ninterval = \"200us\"", "", "`nic0` is no adapter that `netd` drives");
    bad("program = \"netd\"", "program = \"spin\"", "`net0` uses `nic0` and does not run `netd`");
    bad(
        "uses = [\"nic0\", \"nic0.receive\"]",
        "uses = [\"nic0\"]",
        "`net0` has no VCPU to receive on",
    );
    bad("uses = [\"nic0\", \"nic0.receive\"]", "uses = [\"nic0.receive\"]", "nobody drives `nic0`");
}

#[test]
fn no_text_of_addresses_makes_it_panic() {
    let mut random = Random::new(21);
    let letters = b"0123456789abcdef:.\"-x ";
    for _ in 0..200 {
        let length = random.index(24);
        let text: String =
            (0..length).map(|_| char::from(letters[random.index(letters.len())])).collect();
        let text = text.replace('"', "");
        for key in
            ["address = \"10.0.0.1\"", "mac = \"02:00:00:00:00:01\"", "peer = \"10.0.0.2:5000\""]
        {
            let name = key.split(' ').next().unwrap();
            let changed = UDP.replacen(key, &format!("{name} = \"{text}\""), 1);
            let _ = parse("udp.toml", &changed);
        }
    }
}

/// A USB network device with a process of `netd` at each of its two pipes, and two sockets.
const USB: &str = include_str!("../../../examples/udp-usb.toml");

/// Returns what is refused of the USB device after one change: title and remedy of each problem.
fn refused_of_usb(from: &str, to: &str) -> Vec<[String; 2]> {
    assert!(USB.contains(from), "{from}");
    let wrong = problems(&USB.replacen(from, to, 1));
    wrong.items().iter().map(|item| [item.title.to_owned(), item.help.to_owned()]).collect()
}

#[test]
fn a_usb_device_has_a_process_for_each_direction() {
    let system = parse("udp-usb.toml", USB).unwrap_or_else(|wrong| panic!("{wrong}"));
    let archive = built(&system).unwrap_or_else(|wrong| panic!("{wrong}"));
    let index = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    let bits = |names: &[&str]| names.iter().fold(0, |bits, name| bits | 1 << index(name));
    let adapter = &system.adapters[0];
    assert_eq!((adapter.card(), adapter.name()), (None, "nic0"));
    assert_eq!(usize::from(adapter.driver), index("net-in"));
    assert_eq!(adapter.sender().map(usize::from), Some(index("net-out")));
    for (name, users) in [
        ("socket0", &["net-in", "drive"][..]),
        ("socket0.out", &["net-out", "drive"]),
        ("socket1", &["net-in", "recorder"]),
    ] {
        let segment = system.segments.iter().find(|it| it.name == name).unwrap();
        assert_eq!(segment.allowed, bits(users), "{name}");
    }
    assert!(!system.segments.iter().any(|it| it.name.starts_with("nic0")), "no rings of a card");
    assert!(!system.semaphores.iter().any(|it| it.name == "nic0.send"), "nobody wakes the sender");
    let mac = [0x40, 0x54, 0, 0x12, 0x34, 0x56];
    for (name, part) in [
        ("net-in", AdapterPart::Comes),
        ("net-out", AdapterPart::Goes { period_ns: 4_000_000, bytes: 256 }),
    ] {
        let words = AdapterTerms { number: 0, mac, part }.words();
        let of = told(&archive, index(name));
        assert_eq!(of.get(ADAPTER_SETTING), words, "{name}");
        let sockets: Vec<SocketTerms> = SocketTerms::all(of.get(SOCKETS_SETTING)).collect();
        assert_eq!((sockets.len(), sockets[0].is_polled), (2, true), "{name}");
    }
    let sent = &system.usb[0].datagrams;
    assert_eq!(
        sent.iter().map(|it| (it.port, it.answers)).collect::<Vec<_>>(),
        [(5_000, Some(4_000)), (6_000, None)]
    );
}

#[test]
fn an_adapter_of_a_usb_device_has_the_pipes_it_needs() {
    for (from, to, title, help) in [
        ("from = \"nic0\"", "from = \"interface\"", "no pipe brings the frames of `nic0`", "from"),
        ("to = \"nic0\"", "to = \"interface\"", "`drive` sends, and no pipe goes to", "to = "),
        ("program = \"netd\"", "program = \"spin\"", "`net-in` is the reader of `nic0`", "netd"),
        ("writer = \"net-out\"", "writer = \"net-in\"", "reads and writes `nic0`", "of its own"),
        ("model = \"network\"", "model = \"sensor\"", "`nic0` is no network device", "network"),
        ("device = \"nic0\"", "device = \"nic1\"", "no device is called", "network"),
        ("address = \"10", "rate = 900\naddress = \"10", "`rate` of an adapter that", "remove"),
        ("address = \"10", "speed = 100\naddress = \"10", "`speed` of an adapter", "remove"),
        ("bytes = 214", "bytes = 215", "frames of `drive` have up to 257 bytes", "bytes = 214"),
        ("peer_mac = \"52", "priority = 3\npeer_mac = \"52", "up to 260 bytes", "bytes = 210"),
    ] {
        let found = refused_of_usb(from, to);
        let is = |[one, remedy]: &[String; 2]| one.contains(title) && remedy.contains(help);
        assert!(found.iter().any(is), "{title}: {found:?}");
    }
    let silent = USB.replacen("to = \"nic0\"", "to = \"interface\"", 1);
    let peer = "peer = \"10.0.2.2:4000\"\npeer_mac = \"52:55:0a:00:02:02\"\n";
    assert!(silent.contains(peer));
    let wrong = parse("f", &silent.replacen(peer, "", 1)).map(|system| system.adapters.len());
    let wrong = wrong.map_err(|wrong| wrong.to_string()).unwrap_err();
    assert!(!wrong.contains("no pipe goes to"), "nobody sends: {wrong}");
}

#[test]
fn a_server_without_an_adapter_is_refused() {
    let start = USB.find("[[adapter]]").expect("an adapter");
    let end = USB.find("# The pipes of the network device").expect("its pipes");
    let without = format!("{}{}", &USB[..start], &USB[end..]);
    let titles: Vec<String> =
        problems(&without).items().iter().map(|item| item.title.to_owned()).collect();
    for name in ["net-in", "net-out"] {
        let title = format!("`{name}` runs `netd` and has no adapter");
        assert!(titles.contains(&title), "{titles:?}");
    }
}

#[test]
fn a_server_has_one_adapter() {
    bad(
        "uses = [\"nic0\", \"nic0.receive\"]",
        "uses = [\"nic0\", \"nic1\", \"nic0.receive\"]",
        "`net0` has two adapters",
    );
}
