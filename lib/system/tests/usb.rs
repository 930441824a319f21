//! The rules of `[[usb]]` and `[[work]]`: what stands around a host, and how long its works take.

use crate::common::{built, refused};
use diapason_system::{CanTraffic, PluggedCanBus, UsbModel, parse};

/// Returns a system with a USB controller `xhci`, a timer `hpet` and more tables; those begin in
/// line 14.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[device]]\nname = \"hpet\"\naddress = 0xfed00000\nsize = \"4K\"\n{tables}\n"
    )
}

/// With these tables, something in the line (from their first) is refused.
#[track_caller]
fn bad(tables: &str, (line, column): (usize, usize), title: &str, help: &str) {
    refused(&system(tables), (13 + line, column), title, help);
}

#[test]
fn devices_are_plugged_in_and_no_part_of_what_boots() {
    let plug = |model: &str, port| {
        format!("[[usb]]\nname = \"d{port}\"\non = \"xhci\"\nport = {port}\nmodel = \"{model}\"\n")
    };
    let without = parse("f", &system("")).unwrap();
    // A controller has no more ports than there are in a part.
    for part in UsbModel::ALL.chunks(8) {
        let plugs: String =
            part.iter().zip(1..).map(|(model, port)| plug(model.name(), port)).collect();
        let with = parse("f", &system(&plugs)).unwrap();
        let found: Vec<(usize, u8, UsbModel)> =
            with.usb.iter().map(|plug| (plug.device, plug.port, plug.model)).collect();
        let expected: Vec<(usize, u8, UsbModel)> =
            part.iter().zip(1..).map(|(model, port)| (0, port, *model)).collect();
        assert_eq!(found, expected);
        assert_eq!(built(&with).unwrap(), built(&without).unwrap());
    }
}

#[test]
fn devices_are_plugged_into_hubs() {
    let tables = "[[usb]]\nname = \"keys\"\nbehind = \"inner\"\nport = 4\nmodel = \"keyboard\"\n\
                  [[usb]]\nname = \"inner\"\nbehind = \"outer\"\nmodel = \"hub\"\n\
                  [[usb]]\nname = \"outer\"\non = \"xhci\"\nport = 7\nmodel = \"hub\"";
    let system = parse("f", &system(tables)).unwrap();
    let places: Vec<(Option<usize>, usize, u8)> =
        system.usb.iter().map(|plug| (plug.behind, plug.device, plug.port)).collect();
    assert_eq!(places, [(Some(1), 0, 4), (Some(2), 0, 1), (None, 0, 7)]);
}

#[test]
fn what_is_behind_no_hub_is_refused_where_it_stands() {
    let usb = |name: &str, rest: &str| format!("[[usb]]\nname = \"{name}\"\n{rest}\n");
    let hub = usb("hub", "on = \"xhci\"\nmodel = \"hub\"");
    let on_hub = |rest: &str| format!("{hub}{}", usb("a", rest));
    let sensor = "model = \"sensor\"";
    let help = "name a `[[usb]]` with `model = \"hub\"`";
    let nowhere = usb("a", &format!("behind = \"hub\"\n{sensor}"));
    bad(&nowhere, (3, 10), "no USB device is called `hub`", help);
    let both = on_hub(&format!("on = \"xhci\"\nbehind = \"hub\"\nport = 2\n{sensor}"));
    let title = "a device is on a controller or behind a hub, not both";
    bad(&both, (8, 10), title, "remove one of the two");
    let far = on_hub(&format!("behind = \"hub\"\nport = 5\n{sensor}"));
    bad(&far, (8, 8), "a hub has 4 ports", "choose another `port`");
    let fast = on_hub("behind = \"hub\"\nmodel = \"camera\"");
    let title = "a SuperSpeed device does not fit into a hub of USB 2";
    let help = "plug it into the controller: `on = …`, or into a `model = \"superspeed-hub\"`";
    bad(&fast, (7, 10), title, help);
    let slow = on_hub(&format!("behind = \"hub\"\n{sensor}"));
    let slow = slow.replace("model = \"hub\"", "model = \"superspeed-hub\"");
    let title = "a device of USB 2 does not fit into a SuperSpeed hub";
    let help = "plug it into the controller: `on = …`, or into a `model = \"hub\"`";
    bad(&slow, (7, 10), title, help);
    let within = on_hub("behind = \"hub\"\nmodel = \"camera\"");
    let within = within.replace("model = \"hub\"", "model = \"superspeed-hub\"");
    assert!(parse("f", &system(&within)).is_ok());
    let one = usb("one", &format!("on = \"xhci\"\n{sensor}"));
    let on_sensor = one + &usb("a", &format!("behind = \"one\"\n{sensor}"));
    let help = "devices are behind a `[[usb]]` with `model = \"hub\"` or `\"superspeed-hub\"`";
    bad(&on_sensor, (7, 10), "`one` is no hub", help);
    let circle = usb("x", "behind = \"x\"\nmodel = \"hub\"");
    let title = "more than 5 hubs, or hubs in a circle";
    bad(&circle, (3, 10), title, "plug one of the hubs into a controller");
    let twice = on_hub(&format!("behind = \"hub\"\n{sensor}"))
        + &usb("b", &format!("behind = \"hub\"\nport = 1\n{sensor}"));
    bad(&twice, (12, 8), "port 1 has two devices", "give each a `port` of its own");
}

#[test]
fn the_clock_of_an_interface_begins_as_described() {
    let with = |keys: &str| format!("[[usb]]\nname = \"a\"\non = \"xhci\"\n{keys}");
    let begins = |keys: &str| parse("f", &system(&with(keys))).map(|it| it.usb[0].clock_at_ns);
    assert_eq!(begins("model = \"usb-can\"").unwrap(), 0);
    let late = "model = \"gs-usb\"\nclock_at = \"4284s\"";
    assert_eq!(begins(late).unwrap(), 4_284_000_000_000);
    assert!(begins("model = \"gs-usb\"\nclock_at = \"34560001s\"").is_err());
    let help = "only `\"usb-can\"` and `\"gs-usb\"` have CAN buses: remove the key, or take such a \
                model";
    let other = with("model = \"sensor\"\nclock_at = \"1s\"");
    bad(&other, (5, 12), "a device without CAN buses", help);
}

#[test]
fn a_clock_drifts_by_what_is_described() {
    let with = |keys: &str| format!("[[usb]]\nname = \"a\"\non = \"xhci\"\n{keys}");
    let drift = |keys: &str| parse("f", &system(&with(keys))).unwrap().usb[0].drift;
    assert_eq!(drift("model = \"usb-can\""), 100);
    assert_eq!(drift("model = \"usb-can\"\ndrift = 500"), 500);
    assert_eq!(drift("model = \"sensor\"\ndrift = 500"), 500);
    let other = with("model = \"disk\"\ndrift = 500");
    let help = "only messages that pipes carry bear times: remove the key";
    bad(&other, (5, 9), "a device whose clock nobody reads", help);
    assert!(parse("f", &system(&with("model = \"usb-can\"\ndrift = 0"))).is_err());
    assert!(parse("f", &system(&with("model = \"usb-can\"\ndrift = 10001"))).is_err());
}

#[test]
fn buses_of_an_interface_may_be_described() {
    let interface =
        |keys: &str| format!("[[usb]]\nname = \"a\"\non = \"xhci\"\nmodel = \"usb-can\"\n{keys}");
    let keys = "receivers = [\"can4\", \"can3\"]\nturn = [\"1ms\", \"2ms\"]\nsenders = [\"can1\"]\n\
         gap = \"9ms\"\nreplay = [\"can0=logs/a=b.log\"]\ntraffic = [0, 0, 400]\n\
         extended = [\"can2\"]";
    let system_with = parse("f", &system(&interface(keys))).unwrap();
    let turn_ns = (1_000_000, 2_000_000);
    let receiver = |channel| PluggedCanBus { channel, traffic: CanTraffic::Receiver { turn_ns } };
    let (file, log) = (String::from("logs/a=b.log"), String::new());
    let replay = PluggedCanBus { channel: 0, traffic: CanTraffic::Replay { file, log } };
    let sender = PluggedCanBus {
        channel: 1,
        traffic: CanTraffic::Sender { gap_ns: (9_000_000, 9_000_000) },
    };
    let numbered = CanTraffic::Numbered { per_second: 400, extended: true };
    let numbered = PluggedCanBus { channel: 2, traffic: numbered };
    assert_eq!(system_with.usb[0].buses, [receiver(4), receiver(3), sender, replay, numbered]);
    let plain = interface("bit_rates = [100_000]\nreceivers = [\"can0\"]");
    let turn_ns = (470_000, 470_000);
    let reads = PluggedCanBus { channel: 0, traffic: CanTraffic::Receiver { turn_ns } };
    assert_eq!(parse("f", &system(&plain)).unwrap().usb[0].buses, [reads]);

    let place = |column| (5, column);
    let help = "write `\"can0\"` to `\"can4\"`";
    for name in ["can5", "can", "can04", "CAN1", "can+1"] {
        let keys = interface(&format!("receivers = [\"{name}\"]"));
        bad(&keys, place(14), &format!("`{name}` is no channel of `a`"), help);
    }
    let help = "write `\"can0=traffic.log\"`, or a channel up to can4";
    for entry in ["can0", "can0=", "can7=a.log", "=a.log"] {
        let keys = interface(&format!("replay = [\"{entry}\"]"));
        bad(&keys, place(11), &format!("`{entry}` is no channel of `a` and its log"), help);
    }
    let title = "`turn` is no shortest and longest time";
    let help = "write `turn = [\"325us\", \"328us\"]`, or one time";
    let keys = "receivers = [\"can0\"]\nturn = [\"3us\", \"2us\"]";
    bad(&interface(keys), (6, 16), title, help);
    let help = "add `senders = [\"can3\"]`, or remove the key";
    bad(&interface("gap = \"2us\""), (5, 7), "`gap` without `senders`", help);
    let help = "add `gap = [\"9ms\", \"11ms\"]`, the shortest and the longest time between frames";
    let title = "senders that send nobody knows how often";
    bad(&interface("senders = [\"can0\"]"), (5, 12), title, help);
    let title = "can1 carries 4505 frames a second of 4504";
    let help = "at 500000 bit/s write at most 4504, or raise `bit_rates`";
    bad(&interface("traffic = [4504, 4505]"), (5, 18), title, help);
    let six = interface("traffic = [1, 1, 1, 1, 1, 1]");
    let title = "traffic on 6 buses of 5 channels";
    bad(&six, (5, 27), title, "remove those too many");
    let twice = interface("receivers = [\"can2\"]\nreplay = [\"can2=a.log\"]");
    bad(&twice, (6, 11), "the bus of can2 is described twice", "remove one of the two");
    let sensor = interface("receivers = [\"can2\"]").replace("usb-can", "sensor");
    let help =
        "only `\"usb-can\"` and `\"gs-usb\"` have CAN buses: remove the key, or take such a model";
    bad(&sensor, place(14), "a device without CAN buses", help);
}

#[test]
fn an_interface_has_as_many_channels_as_is_said() {
    let interface = |keys: &str| {
        format!("[[usb]]\nname = \"a\"\non = \"xhci\"\nmodel = \"usb-can\"\nchannels = 2\n{keys}")
    };
    let keys = "bit_rates = [125_000, 250_000]\ntraffic = [300, 300]";
    let whole = parse("f", &system(&interface(keys))).unwrap();
    assert_eq!((whole.usb[0].channels, whole.usb[0].buses.len()), (2, 2));
    let usual = "[[usb]]\nname = \"a\"\non = \"xhci\"\nmodel = \"usb-can\"";
    assert_eq!(parse("f", &system(usual)).unwrap().usb[0].channels, 5);

    let more = "remove those too many";
    let rates = interface("bit_rates = [125_000, 250_000, 500_000]");
    bad(&rates, (6, 32), "3 bit rates for 2 channels", more);
    bad(&interface("traffic = [1, 1, 1]"), (6, 18), "traffic on 3 buses of 2 channels", more);
    let one = interface("traffic = [1, 1]").replace("channels = 2", "channels = 1");
    bad(&one, (6, 15), "traffic on 2 buses of 1 channel", more);
    for key in ["receivers", "senders", "extended"] {
        let gap = if key == "senders" { "gap = \"1ms\"" } else { "" };
        let keys = interface(&format!("{key} = [\"can2\"]\n{gap}"));
        let help = "write `\"can0\"` to `\"can1\"`";
        bad(&keys, (6, 5 + key.len()), "`can2` is no channel of `a`", help);
    }
    let help = "write `\"can0=traffic.log\"`, or a channel up to can1";
    let replay = interface("replay = [\"can2=a.log\"]");
    bad(&replay, (6, 11), "`can2=a.log` is no channel of `a` and its log", help);
    for wrong in ["0", "6"] {
        let keys = interface("").replace("channels = 2", &format!("channels = {wrong}"));
        let title = format!("`channels` is {wrong}, out of range");
        bad(&keys, (5, 12), &title, "write a whole number from 1 to 5 CAN channels");
    }
    let sensor = interface("").replace("usb-can", "sensor");
    let help =
        "only `\"usb-can\"` and `\"gs-usb\"` have CAN buses: remove the key, or take such a model";
    bad(&sensor, (5, 12), "a device without CAN buses", help);
}

/// Channels with CAN FD have a rate of data that is not below the other, on an interface that has
/// it.
#[test]
fn channels_with_can_fd_have_their_rates() {
    let interface = |keys: &str| {
        let model = "model = \"gs-usb\"\nchannels = 2";
        system(&format!("[[usb]]\nname = \"a\"\non = \"xhci\"\n{model}\n{keys}"))
    };
    let whole = parse("f", &interface("data_rates = [0, 2_000_000]")).unwrap();
    assert_eq!(whole.usb[0].data_rates[..2], [0, 2_000_000]);
    let refused = |text: &str| {
        let wrong = parse("f", text).expect_err("it is refused");
        wrong.to_string()
    };
    let many = refused(&interface("data_rates = [0, 0, 0]"));
    assert!(many.contains("3 rates of data for 2 channels"), "{many}");
    let slow = refused(&interface("bit_rates = [500_000]\ndata_rates = [400_000]"));
    assert!(slow.contains("the data would be slower than the 500000 bit/s of the rest"), "{slow}");
    let fast = refused(&interface("data_rates = [8_000_001]"));
    assert!(fast.contains("out of range"), "{fast}");
    let kvaser = interface("data_rates = [2_000_000]").replace("gs-usb", "usb-can");
    assert!(refused(&kvaser).contains("`a` has no CAN FD"), "{}", refused(&kvaser));
    let sensor = interface("data_rates = [0]").replace("gs-usb", "sensor");
    assert!(refused(&sensor).contains("a device without CAN buses"), "{}", refused(&sensor));
    let bus = "[[can]]\nname = \"b\"\nrate = 500_000\nusb = \"a\"\n[[message]]\nname = \"m\"\n\
               bus = \"b\"\nsender = \"elsewhere\"\nperiod = \"10ms\"\nbytes = 8\n";
    let planned = refused(&interface(&format!("data_rates = [2_000_000]\n{bus}")));
    assert!(planned.contains("and its channel has CAN FD"), "{planned}");
}

#[test]
fn works_have_a_worst_time_and_perhaps_a_best() {
    let tables = "[[work]]\nname = \"a\"\nworst = \"3us\"\n\
                  [[work]]\nname = \"b\"\nworst = \"3us\"\nbest = \"1us\"";
    let system = parse("f", &system(tables)).unwrap();
    let times: Vec<(u64, u64)> =
        system.works.iter().map(|work| (work.best_ns, work.worst_ns)).collect();
    assert_eq!(times, [(3_000, 3_000), (1_000, 3_000)]);
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let usb = |rest: &str| format!("[[usb]]\nname = \"a\"\n{rest}");
    let model = "model = \"sensor\"";
    let help = "name a `[[device]]` with `pci = \"0c0330\"`";
    bad(&usb(&format!("on = \"usb\"\n{model}")), (3, 6), "no device is called `usb`", help);
    let help = "USB devices are plugged into a `[[device]]` with `pci = \"0c0330\"`";
    let title = "`hpet` is no USB controller";
    bad(&usb(&format!("on = \"hpet\"\n{model}")), (3, 6), title, help);
    let title = "`model` cannot be `senser`";
    bad(&usb("on = \"xhci\"\nmodel = \"senser\""), (4, 9), title, "did you mean `\"sensor\"`?");
    let one = usb(&format!("on = \"xhci\"\n{model}"));
    let two = format!("{one}\n[[usb]]\nname = \"b\"\non = \"xhci\"\nport = 1\n{model}");
    bad(&two, (8, 8), "port 1 has two devices", "give each a `port` of its own");
    let work = "[[work]]\nname = \"w\"\nworst = \"1us\"\nbest = \"2us\"";
    let help = "write a `best` of at most `worst`";
    bad(work, (4, 8), "the best case is worse than the worst", help);
    let nothing = "[[work]]\nname = \"w\"\nworst = \"0us\"";
    bad(nothing, (3, 9), "`worst` is out of range", "write a time from `1ns` to `1000s`");
    let twice = "[[work]]\nname = \"w\"\nworst = \"1us\"\n[[work]]\nname = \"w\"\nworst = \"1us\"";
    bad(twice, (5, 8), "the work `w` is declared twice", "remove one of the two");
}

#[test]
fn channels_run_at_what_the_interface_says() {
    let interface =
        |keys: &str| format!("[[usb]]\nname = \"a\"\non = \"xhci\"\nmodel = \"usb-can\"\n{keys}");
    let whole = parse("f", &system(&interface("bit_rates = [125_000, 1_000_000]"))).unwrap();
    assert_eq!(whole.usb[0].bit_rates, [125_000, 1_000_000, 500_000, 500_000, 500_000]);
    assert_eq!(whole.usb[0].sample_point, 875);
    let whole = parse("f", &system(&interface("sample_point = 800"))).unwrap();
    assert_eq!((whole.usb[0].bit_rates, whole.usb[0].sample_point), ([500_000; 5], 800));
    assert_eq!(whole.usb[0].restart_ns, None);
    let whole = parse("f", &system(&interface("restart = \"100ms\""))).unwrap();
    assert_eq!(whole.usb[0].restart_ns, Some(100_000_000));
    let title = "`bit_rates` is 5000, out of range";
    let help = "write a whole number from 10000 to 1000000 bit/s, one for each channel";
    bad(&interface("bit_rates = [5000]"), (5, 14), title, help);
    let six = "bit_rates = [10000, 10000, 10000, 10000, 10000, 10000]";
    bad(&interface(six), (5, 49), "6 bit rates for 5 channels", "remove those too many");
    let help =
        "only `\"usb-can\"` and `\"gs-usb\"` have CAN buses: remove the key, or take such a model";
    for (key, column) in [("sample_point = 800", 16), ("restart = \"1s\"", 11)] {
        let sensor = interface(key).replace("usb-can", "sensor");
        bad(&sensor, (5, column), "a device without CAN buses", help);
    }
}

#[test]
fn a_device_is_known_by_what_it_says_of_itself() {
    let usb = |model: &str, rest: &str| {
        format!("[[usb]]\nname = \"a\"\non = \"xhci\"\nmodel = \"{model}\"\n{rest}")
    };
    let disk = |rest: &str| usb("disk", rest);
    let known = |rest: &str| {
        let system = parse("f", &system(&disk(rest))).unwrap();
        (system.usb[0].identity, system.usb[0].serial.clone())
    };
    assert_eq!(known(""), ((0, 0), None));
    assert_eq!(known("vendor = 0x1209\nproduct = 3"), ((0x1209, 3), None));
    assert_eq!(known("serial = \"4C 53,1\""), ((0, 0), Some("4C 53,1".into())));
    let help = "add `vendor = …`: products are numbered by each vendor";
    bad(&disk("product = 3"), (5, 11), "a product of no vendor", help);
    for wrong in [String::new(), "x".repeat(127), "é".into()] {
        let words = "is not a serial number: 1 to 126 printable characters of ASCII";
        let help = "write it as in `serial = \"000000000001\"`";
        let key = format!("serial = \"{wrong}\"");
        bad(&disk(&key), (5, 10), &format!("`{wrong}` {words}"), help);
    }
    let help = "any hub is served: remove the key, and say it of the devices behind it";
    for (key, column) in [("vendor = 1", 10), ("serial = \"1\"", 10)] {
        bad(&usb("hub", key), (5, column), "a hub that nobody would check", help);
    }
}

#[test]
fn an_adapter_of_the_computer_is_taken_for_the_model_that_speaks_as_it_does() {
    let adapter = |model: &str, more: &str| {
        format!("[[usb]]\nname = \"cable\"\non = \"xhci\"\nmodel = \"{model}\"\n{more}")
    };
    let parsed = |model: &str| parse("f", &system(&adapter(model, ""))).unwrap().usb[0].clone();
    let kvaser = parsed("host:0BFD:0108");
    assert_eq!((kvaser.model, kvaser.identity), (UsbModel::UsbCan, (0x0bfd, 0x0108)));
    assert_eq!(kvaser.word(), "host:0bfd:0108");
    assert!(kvaser.only_in_qemu());
    let gs_usb = parsed("host:1d50:606f");
    assert_eq!((gs_usb.model, gs_usb.identity), (UsbModel::GsUsb, (0x1d50, 0x606f)));
    let model = parsed("gs-usb");
    assert!(!model.only_in_qemu());
    assert_eq!(model.word(), "gs-usb");

    let form = "write vendor and product in four hexadecimal digits each, as `lsusb` shows them: \
                `\"host:0bfd:0108\"`";
    for text in ["host:", "host:0bfd", "host:0bfd:108", "host:0bfd:+108", "host:0bfd:01080"] {
        bad(&adapter(text, ""), (4, 9), &format!("`model` cannot be `{text}`"), form);
    }
    let served = "take an interface to CAN: 0bfd:0102 to 011b, or 1d50:606f, 1209:2323, 1cd2:606f, \
                  16d0:10b8, 16d0:0f30";
    bad(&adapter("host:0bfd:0001", ""), (4, 9), "`model` cannot be `host:0bfd:0001`", served);
    let twice = "remove the key: `model` has vendor and product of an adapter";
    bad(
        &adapter("host:0bfd:0108", "vendor = 3069\n"),
        (5, 10),
        "an adapter that is named twice",
        twice,
    );
    let log = "remove the key, or take a model: nobody plays a log on a real bus";
    let replay = "replay = [\"can0=a.log\"]\n";
    bad(&adapter("host:0bfd:0108", replay), (5, 11), "a log on the bus of an adapter", log);
}
