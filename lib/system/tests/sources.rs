//! Pipes from devices that are no CAN interfaces: what follows from one, and what their endpoints
//! cannot do.

use crate::common::{built, refused, told};
use diapason_abi::Nanos;
use diapason_contract::carried::{CONTRACTS, Contract, Contracts};
use diapason_contract::disk::{self, PIPED, WRITE};
use diapason_contract::endpoint::NUMBER;
use diapason_contract::network;
use diapason_contract::settings::{DEVICES, Expected};
use diapason_contract::source::{MessageShape, PipeSource, READS, SHAPES};
use diapason_contract::threads::ServiceKind;
use diapason_system::{System, parse};

/// Returns a USB server with a sensor and a disk, a reader `r`, and more tables; those begin in
/// line 26.
fn system(tables: &str) -> String {
    format!(
        "[system]\nname = \"s\"\n[[process]]\nname = \"usbd\"\npriority = 1\nuses = [\"xhci\"]\n\
         [[process]]\nname = \"r\"\npriority = 1\nvcpu = \"v\"\n\
         [[vcpu]]\nname = \"v\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n\
         [[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\n\
         [[usb]]\nname = \"sensor\"\non = \"xhci\"\nport = 1\nmodel = \"sensor\"\n{tables}\n"
    )
}

/// Returns the lines of a pipe: 1 the header, 2 name, 3 from, 4 reader, 5 more.
fn pipe(more: &str) -> String {
    format!("[[pipe]]\nname = \"p\"\nfrom = \"sensor\"\nreader = \"r\"\n{more}\n")
}

#[track_caller]
fn bad(tables: &str, (line, column): (usize, usize), title: &str, help: &str) {
    refused(&system(tables), (23 + line, column), title, help);
}

#[test]
fn a_pipe_from_a_sensor_says_what_the_parts_would() {
    let piped = parse("f", &system(&pipe("period = \"41ms\"\nburst = 2\nstamp = 16"))).unwrap();
    assert_eq!((piped.pipes[0].rate, piped.pipes[0].period_ns), (25, Some(41_000_000)));
    let archive = built(&piped).unwrap();
    let of_sensor = Contracts::of(told(&archive, 0).get(CONTRACTS)).0[10];
    let per = Nanos::from_millis(41);
    let contract = Contract { messages: 1, per, burst: 2, jitter: Nanos::ZERO };
    assert_eq!(of_sensor, Some(contract));
    let shape = MessageShape { bytes: 512, stamp: Some(16) };
    assert_eq!(told(&archive, 0).get(SHAPES), [shape.word()]);
    let names = |uses: &[String]| uses.iter().filter(|name| name.contains("sensor")).count();
    assert_eq!((names(&piped.processes[0].uses), names(&piped.processes[1].uses)), (2, 2));
}

#[test]
fn a_pipe_asks_for_no_more_than_the_endpoint_can_do() {
    let most = "write at most `bytes = 512`: a longer message is several packets";
    let title = "a packet of `sensor` has 512 bytes at most";
    bad(&pipe("rate = 400\nbytes = 513"), (6, 9), title, most);
    let title = "`sensor` has a message every 10us at most";
    bad(&pipe("period = \"9us\""), (5, 10), title, "write at least `period = \"10us\"`");
    let title = "`sensor` has 100000 messages a second at most";
    bad(&pipe("rate = 100_001"), (2, 8), title, "write at most `rate = 100000`");
    let title = "`sensor` keeps 8 messages at once";
    bad(&pipe("rate = 400\nburst = 9"), (2, 8), title, "write at most `burst = 8`");
    let title = "the time of a message would be beyond its 20 bytes";
    let help = "write at most `stamp = 12`: a time has 8 bytes";
    bad(&pipe("rate = 400\nbytes = 20\nstamp = 13"), (7, 9), title, help);
    let help = "remove one of the two: both say how often messages come";
    bad(&pipe("rate = 400\nperiod = \"2ms\""), (5, 8), "a pipe with `rate` and `period`", help);
    assert!(parse("f", &system(&pipe("period = \"1s\""))).is_ok());
}

/// A key with a value that is out of range is there, so no second problem says that it is missing.
#[test]
fn a_value_out_of_range_is_one_problem() {
    let says = |tables: &str, what: &str| {
        let report = parse("f", &system(tables)).unwrap_err().plain();
        assert_eq!(report.matches("error: ").count(), 1, "{report}");
        assert!(report.contains(what), "{report}");
    };
    let one = |tables: &str| says(tables, "out of range");
    one(&pipe("period = \"1001ms\""));
    let of = |model: &str, more: &str| {
        let device =
            format!("[[usb]]\nname = \"it\"\non = \"xhci\"\nport = 2\nmodel = \"{model}\"");
        pipe(more).replace("\"sensor\"", "\"it\"") + &device
    };
    one(&of("instrument", "period = \"2ms\"\nbytes = 64\nendpoint = 16"));
    one(&of("instrument", "period = \"2ms\"\nbytes = 0\nendpoint = 1"));
    one(&of("camera", "period = \"2s\""));
    let disk = |more: &str| of("disk", more) + "\ntakes = \"1ms\"";
    one(&disk("period = \"2s\"\nbytes = 512"));
    says(&disk("period = \"9ms\"\nbytes = 65537"), "has 65536 bytes at most");
}

#[test]
fn an_endpoint_has_its_direction_and_its_channel() {
    let to = pipe("rate = 400").replace("from =", "to =").replace("reader =", "writer =");
    let help = "write `from` and `reader`, or another device";
    bad(&to, (3, 6), "nothing can be written to `sensor`", help);
    let title = "`sensor` has no channel 1";
    bad(&pipe("rate = 400\nchannel = 1"), (6, 11), title, "it has one: write `channel = 0`");
    let title = "a pipe whose messages have their shape";
    let help = "remove the key: messages of a CAN interface are frames, which bear times";
    let can = "[[usb]]\nname = \"can\"\non = \"xhci\"\nport = 2\nmodel = \"usb-can\"\n";
    let of_can = pipe("rate = 400\nbytes = 8").replace("from = \"sensor\"", "from = \"can\"");
    bad(&(can.to_owned() + &of_can), (11, 9), title, help);
}

#[test]
fn an_endpoint_carries_one_pipe_and_each_sensor_of_several_has_one() {
    let two = pipe("rate = 400") + &pipe("rate = 400").replace("\"p\"", "\"q\"");
    let found = parse("f", &system(&two)).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert!(titles.contains(&"`sensor` has two pipes, and its endpoint carries one"), "{titles:?}");
    let other = "[[usb]]\nname = \"other\"\non = \"xhci\"\nport = 2\nmodel = \"sensor\"\n";
    let title = "`other` has no pipe, and so nobody serves it";
    let help = "declare a `[[pipe]]` from it, or plug it into another controller";
    bad(&(other.to_owned() + &pipe("rate = 400")), (2, 8), title, help);
    let tuned = "[[tpipe]]\nname = \"t\"\nfrom = \"sensor\"\nreader = \"r\"\nchannels = [0]\n\
                 rate = 1\nbudget = \"1ms\"\nperiod = \"4ms\"\n";
    let found = parse("f", &system(tuned)).unwrap_err();
    assert_eq!(found.items()[0].title, "programs cannot open pipes of `sensor`");
    for model in ["actuator", "servo"] {
        let drive =
            format!("[[usb]]\nname = \"d\"\non = \"xhci\"\nport = 2\nmodel = \"{model}\"\n");
        let of_drive = drive + &tuned.replace("\"sensor\"", "\"d\"");
        let found = parse("f", &system(&of_drive)).unwrap_err();
        assert_eq!(found.items()[0].title, "programs cannot open pipes of `d`", "{model}");
        assert!(found.plain().contains("with the shortest period that its program may want"));
    }
    let other = "[[usb]]\nname = \"gs\"\non = \"xhci\"\nport = 2\nmodel = \"gs-usb\"\n".to_owned();
    let found = parse("f", &system(&(other + &tuned.replace("\"sensor\"", "\"gs\"")))).unwrap_err();
    let titles: Vec<&str> = found.items().iter().map(|item| item.title).collect();
    assert!(titles.contains(&"programs cannot open pipes of `gs`, a `\"gs-usb\"`"), "{titles:?}");
}

/// Returns a keyboard, in lines 1 to 5, and a pipe from it with more keys, which begins in line 6.
fn keys(more: &str) -> String {
    let keyboard = "[[usb]]\nname = \"keys\"\non = \"xhci\"\nport = 3\nmodel = \"keyboard\"\n";
    keyboard.to_owned() + &pipe(more).replace("\"sensor\"", "\"keys\"")
}

#[test]
fn a_pipe_of_any_endpoint_says_which_one_and_how_long_its_packets_are() {
    let piped = parse("f", &system(&keys("period = \"50ms\"\nendpoint = 1\nbytes = 8"))).unwrap();
    let archive = built(&piped).unwrap();
    assert_eq!(told(&archive, 0).get(NUMBER), [1]);
    let shape = MessageShape { bytes: 8, stamp: None };
    assert_eq!(told(&archive, 0).get(SHAPES), [0, shape.word()]);
    let served: Vec<_> =
        Expected::all(told(&archive, 0).get(DEVICES)).map(|it| it.service).collect();
    assert_eq!(served, [ServiceKind::Sensors, ServiceKind::Endpoints]);
    let title = "`p` does not say which endpoint of `keys` it reads";
    let help = "add `endpoint = 1`, the number of one that sends packets to the host";
    bad(&keys("period = \"50ms\"\nbytes = 8"), (7, 8), title, help);
    let title = "`p` does not say how long the packets of `keys` are";
    let help = "add `bytes = 8`, the most bytes of a packet of its endpoint";
    bad(&keys("period = \"50ms\"\nendpoint = 1"), (7, 8), title, help);
    let help = "remove the key: the service of this device knows its endpoints";
    let title = "a pipe whose endpoint is known";
    bad(&pipe("rate = 400\nendpoint = 3"), (6, 12), title, help);
    let to = keys("period = \"50ms\"\nendpoint = 1\nbytes = 8");
    let to = to.replace("from =", "to =").replace("reader =", "writer =");
    let help = "write `from` and `reader`, or another device";
    bad(&to, (8, 6), "nothing can be written to `keys`", help);
}

#[test]
fn the_server_reads_one_endpoint() {
    let instrument = "[[usb]]\nname = \"i\"\non = \"xhci\"\nport = 4\nmodel = \"instrument\"\n";
    let more = "period = \"50ms\"\nendpoint = 1\nbytes = 8";
    let title = "`keys` has a pipe, and the server could serve `i` instead";
    let help = "it serves one of them at a time: plug the other into another controller";
    bad(&(instrument.to_owned() + &keys(more)), (2, 8), title, help);
    let sensor = pipe("rate = 400").replace("\"p\"", "\"q\"");
    assert!(parse("f", &system(&(keys(more) + &sensor))).is_ok(), "a sensor is another matter");
}

/// Returns a camera, in lines 1 to 5, and a pipe from it with more keys, which begins in line 6.
fn pictures(more: &str) -> String {
    let camera = "[[usb]]\nname = \"eye\"\non = \"xhci\"\nport = 4\nmodel = \"camera\"\n";
    camera.to_owned() + &pipe(more).replace("\"sensor\"", "\"eye\"")
}

#[test]
fn a_pipe_of_a_camera_brings_the_memory_of_its_pieces() {
    let piped = parse("f", &system(&pictures("period = \"40ms\"\nbytes = 614400"))).unwrap();
    let named = |name: &str| piped.segments.iter().find(|segment| segment.name == name).unwrap();
    assert_eq!((named("camera.data").size, named("camera.data").dma), (512 << 10, true));
    assert!(!named("camera.back").dma && !named("camera").dma);
    let archive = built(&piped).unwrap();
    let shape = MessageShape { bytes: 614_400, stamp: Some(0) };
    assert_eq!(told(&archive, 0).get(SHAPES), [0, 0, shape.word()]);
}

#[test]
fn a_third_process_at_the_objects_of_a_pipe_is_refused() {
    let thief = |tables: &str, used: &str| {
        let process = format!("[[process]]\nname = \"t\"\npriority = 1\nuses = [\"{used}\"]\n");
        parse("f", &system(&(tables.to_owned() + &process)))
    };
    let of_camera = pictures("period = \"40ms\"\nbytes = 614400");
    let of_sensor = pipe("rate = 400");
    for (tables, used) in [
        (&of_sensor, "sensor"),
        (&of_sensor, "sensor.ready"),
        (&of_camera, "camera.back"),
        (&of_camera, "camera.data"),
    ] {
        let wrong = thief(tables, used).expect_err(used).plain();
        assert!(wrong.contains(&format!("`t` uses `{used}`, which belongs to others")), "{wrong}");
        assert!(wrong.contains("leave it out of `uses`"), "{wrong}");
    }
    // Asks of another program would delay those of the reader.
    let disk = "[[usb]]\nname = \"disk\"\non = \"xhci\"\nport = 2\nmodel = \"disk\"\n\
                takes = \"1ms\"\n\
                [[pipe]]\nname = \"p\"\nfrom = \"disk\"\nreader = \"r\"\nperiod = \"10ms\"\n\
                bytes = 4096\n";
    for used in ["disk.ask", "disk.asks", "disk.data"] {
        assert!(thief(disk, used).is_err(), "{used}");
    }
}

/// Returns so many cameras, the first of which have pipes.
fn cameras(count: usize, piped: usize) -> String {
    let one = |number: usize| {
        let camera = format!(
            "[[usb]]\nname = \"eye{number}\"\non = \"xhci\"\nport = {}\nmodel = \"camera\"\n",
            number + 4
        );
        let pipe = pipe("period = \"40ms\"\nbytes = 614400");
        let pipe = pipe.replace("\"sensor\"", &format!("\"eye{number}\""));
        let pipe = pipe.replace("\"p\"", &format!("\"p{number}\""));
        if number < piped { camera + &pipe } else { camera }
    };
    system(&(0..count).map(one).collect::<String>())
}

#[test]
fn each_camera_with_a_pipe_has_objects_and_a_seat_of_its_own() {
    let piped = parse("f", &cameras(3, 3)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let uses = &piped.processes[0].uses;
    for name in ["camera", "camera1.back", "camera2.data", "camera2.ready"] {
        assert!(uses.iter().any(|it| it == name), "{name} of {uses:?}");
    }
    assert!(!uses.iter().any(|it| it.starts_with("camera3")));
    let numbers: Vec<u8> = piped.pipes.iter().map(|pipe| pipe.number).collect();
    let of_seat = |seat| PipeSource::seated(ServiceKind::Cameras, seat).unwrap().0 as u8;
    assert_eq!(numbers, [0, 1, 2].map(of_seat));
    let archive = built(&piped).unwrap();
    let shape = MessageShape { bytes: 614_400, stamp: Some(0) }.word();
    assert_eq!(told(&archive, 0).get(SHAPES), [0, 0, shape, 0, 0, shape, shape]);
    let seats: Vec<u8> = Expected::all(told(&archive, 0).get(DEVICES))
        .filter(|device| device.service == ServiceKind::Cameras)
        .map(|device| device.interface)
        .collect();
    assert_eq!(seats, [0, 1, 2]);
}

/// Returns a server with so many sensors. Each has a pipe to a reader of its own.
fn sensors(count: usize) -> String {
    let further = |number: usize| {
        let port = number + 2;
        format!(
            "[[usb]]\nname = \"s{number}\"\non = \"xhci\"\nport = {port}\nmodel = \"sensor\"\n\
             [[pipe]]\nname = \"p{number}\"\nfrom = \"s{number}\"\nreader = \"r{number}\"\n\
             period = \"2500us\"\n\
             [[process]]\nname = \"r{number}\"\npriority = 1\nvcpu = \"v{number}\"\n\
             [[vcpu]]\nname = \"v{number}\"\nbudget = \"1ms\"\nperiod = \"10ms\"\n"
        )
    };
    let further: String = (1..count).map(further).collect();
    system(&(pipe("period = \"2500us\"") + &further))
}

#[test]
fn each_sensor_with_a_pipe_has_objects_and_a_seat_of_its_own_and_its_reader_knows_which() {
    let piped = parse("f", &sensors(3)).unwrap_or_else(|wrong| panic!("{wrong}"));
    let of_seat = |seat| PipeSource::seated(ServiceKind::Sensors, seat).unwrap().0 as u8;
    let numbers: Vec<u8> = piped.pipes.iter().map(|pipe| pipe.number).collect();
    assert_eq!(numbers, [0, 1, 2].map(of_seat));
    let archive = built(&piped).unwrap();
    for (pipe, name) in piped.pipes.iter().zip(["sensor", "sensor1", "sensor2"]) {
        let reader = pipe.process().unwrap();
        let process = &piped.processes[usize::from(reader)];
        let own = process.uses.iter().filter(|used| used.starts_with("sensor"));
        assert_eq!(own.collect::<Vec<_>>(), [name, &format!("{name}.ready")]);
        let told = told(&archive, reader.into()).get(READS).to_vec();
        let further = (name != "sensor").then_some(u64::from(pipe.number));
        assert_eq!(told, further.into_iter().collect::<Vec<_>>(), "{name}");
    }
    let server = piped.pipes[0].server;
    let seats: Vec<u8> = Expected::all(told(&archive, server.into()).get(DEVICES))
        .filter(|device| device.service == ServiceKind::Sensors)
        .map(|device| device.interface)
        .collect();
    assert_eq!(seats, [0, 1, 2]);
    assert!(parse("f", &sensors(4)).is_ok());
    let many = parse("f", &sensors(5)).unwrap_err().plain();
    assert!(many.contains("`s4` is one sensor too many: 4 may have pipes"), "{many}");
}

#[test]
fn a_server_has_a_bottom_half_for_each_sensor() {
    let text = include_str!("../../../examples/sensors.toml");
    let system = parse("sensors.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let server = system.processes.iter().position(|process| process.name == "usbd").unwrap();
    let halves = system.bottom_halves(server.try_into().unwrap());
    let vcpus: Vec<&str> = halves.iter().map(|home| home.vcpu).collect();
    assert_eq!(vcpus, ["usb-sensor", "usb-sensor1", "usb-sensor2"]);
}

#[test]
fn the_server_knows_which_of_two_disks_is_written() {
    let text = include_str!("../../../examples/disks.toml");
    let system = parse("disks.toml", text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let archive = built(&system).unwrap();
    let place = |name: &str| system.processes.iter().position(|it| it.name == name).unwrap();
    assert_eq!(told(&archive, place("usbd")).get(PIPED), [disk::READ.into(), WRITE.into()]);
    assert_eq!(told(&archive, place("player")).get(READS), [0; 0]);
    let (number, second) = PipeSource::seated(ServiceKind::Disks, 1).unwrap();
    assert_eq!(told(&archive, place("recorder")).get(READS), [number as u64]);
    let uses = &system.processes[place("recorder")].uses;
    assert!(second.objects().all(|name| uses.iter().any(|it| it == name)), "{uses:?}");
}

#[test]
fn cameras_that_nobody_would_serve_are_refused() {
    let refused = |text: &str| parse("f", text).unwrap_err().plain();
    let silent = refused(&cameras(2, 1));
    assert!(silent.contains("`eye1` has no pipe, and so nobody serves it"), "{silent}");
    assert!(parse("f", &cameras(4, 4)).is_ok());
    let many = refused(&cameras(5, 5));
    assert!(many.contains("`eye4` is one camera too many: 4 may have pipes"), "{many}");
}

#[test]
fn a_pipe_of_a_camera_says_its_period_and_nothing_that_the_camera_knows() {
    let title = "`p` does not say how often `eye` has a picture";
    let help = "write `period = \"40ms\"` instead of `rate`: the camera is asked for that";
    bad(&pictures("rate = 25"), (7, 8), title, help);
    let help = "remove the key: a camera says in its heads when it made a picture";
    let title = "a pipe whose messages bear their times";
    bad(&pictures("period = \"40ms\"\nstamp = 2"), (11, 9), title, help);
    let title = "`eye` has its pictures at even distances";
    let help = "remove `jitter`: the camera agrees to the period of the pipe";
    bad(&pictures("period = \"40ms\"\njitter = \"1ms\""), (7, 8), title, help);
    let title = "`eye` keeps 1 messages at once";
    bad(&pictures("period = \"40ms\"\nburst = 2"), (7, 8), title, "write at most `burst = 1`");
}

/// Returns a disk, and a pipe from it with these keys.
fn disk(device: &str, keys: &str) -> String {
    system(&format!(
        "[[usb]]\nname = \"disk\"\non = \"xhci\"\nport = 2\nmodel = \"disk\"\n{device}\n\
         [[pipe]]\nname = \"p\"\nfrom = \"disk\"\nreader = \"r\"\n{keys}\n"
    ))
}

#[test]
fn a_pipe_from_a_disk_brings_what_its_reader_asks_by() {
    let text = disk("takes = \"1ms\"", "period = \"10ms\"\nbytes = 4096");
    let piped = parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
    let uses = &piped.processes[1].uses;
    for name in ["disk.asks", "disk.answers", "disk.data", "disk.ask", "disk.ready"] {
        assert!(uses.iter().any(|it| it == name), "{name} of {uses:?}");
    }
    let data = piped.segments.iter().find(|it| it.name == "disk.data").unwrap();
    assert!(data.dma && data.size == 256 << 10);
    assert_eq!(piped.usb[1].takes_ns, Some(1_000_000));
    let shape = MessageShape { bytes: 4_096, stamp: Some(0) };
    assert_eq!(piped.pipes[0].shape, shape);
}

#[test]
fn what_a_disk_cannot_carry_is_refused_with_what_it_can() {
    let takes = "takes = \"1ms\"";
    for (device, keys, wrong, remedy) in [
        ("", "period = \"10ms\"", "nobody knows how long `disk` takes", "takes = \"500us\""),
        (takes, "rate = 100", "does not say how often it reads", "period = \"4ms\""),
        (takes, "period = \"10ms\"\nbytes = 1000", "no whole blocks of 512", "bytes = 1024"),
        (takes, "period = \"10ms\"\nbytes = 65537", "has 65536 bytes at most", "bytes = 65536"),
        (takes, "period = \"10ms\"\nstamp = 8", "messages bear their times", "remove the key"),
        (takes, "period = \"10ms\"\njitter = \"1ms\"", "one by one", "`jitter`"),
        (takes, "period = \"10ms\"\nendpoint = 1", "endpoint is known", "remove the key"),
        (takes, "period = \"499us\"", "every 500us at most", "period = \"500us\""),
    ] {
        let refused = parse("f", &disk(device, keys)).expect_err(keys).plain();
        assert!(refused.contains(wrong) && refused.contains(remedy), "{keys}: {refused}");
    }
    let sensor =
        system(&pipe("period = \"41ms\"")).replace("port = 1", "port = 1\ntakes = \"1ms\"");
    let refused = parse("f", &sensor).unwrap_err().plain();
    assert!(refused.contains("a device without commands"), "{refused}");
}

/// A pipe to a disk brings the same objects as one from it, and the server knows which it is.
#[test]
fn a_pipe_to_a_disk_is_one_from_it_the_other_way_round() {
    let turned = |keys: &str| {
        let text = disk("takes = \"1ms\"", keys);
        text.replace("from = \"disk\"\nreader = \"r\"", "to = \"disk\"\nwriter = \"r\"")
    };
    let keys = "period = \"10ms\"\nbytes = 4096";
    let [from, to] = [disk("takes = \"1ms\"", keys), turned(keys)]
        .map(|text| parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}")));
    assert_eq!(from.processes[1].uses, to.processes[1].uses);
    assert_eq!(from.segments, to.segments);
    assert!(to.pipes[0].is_written() && !from.pipes[0].is_written());
    for (system, kind) in [(&from, &[][..]), (&to, &[u64::from(WRITE)])] {
        assert_eq!(told(&built(system).unwrap(), 0).get(PIPED), kind);
    }
    for (keys, wrong, remedy) in [
        ("rate = 100", "does not say how often it writes to", "its writer asks once"),
        ("period = \"10ms\"\nstamp = 8", "messages bear their times", "at which it was written"),
        ("period = \"10ms\"\nbytes = 1000", "no whole blocks of 512", "bytes = 1024"),
        ("period = \"10ms\"\nburst = 2", "one by one", "`burst`"),
    ] {
        let refused = parse("f", &turned(keys)).expect_err(keys).plain();
        assert!(refused.contains(wrong) && refused.contains(remedy), "{keys}: {refused}");
    }
    let second = "\n[[pipe]]\nname = \"q\"\nfrom = \"disk\"\nreader = \"r\"\nperiod = \"10ms\"\n";
    let refused = parse("f", &(turned(keys) + second)).unwrap_err().plain();
    assert!(refused.contains("`disk` has two pipes"), "{refused}");
    assert!(!refused.contains("declared twice"), "{refused}");
}

/// Returns a network device and its pipe, with these keys of both.
fn adapter(device: &str, ends: &str, keys: &str) -> String {
    system(&format!(
        "[[usb]]\nname = \"adapter\"\non = \"xhci\"\nport = 2\nmodel = \"network\"\n{device}\n\
         [[pipe]]\nname = \"p\"\n{ends}\n{keys}\n"
    ))
}

/// The ends of a pipe from the network device, and of one to it.
const READ: &str = "from = \"adapter\"\nreader = \"r\"";
const SENT: &str = "to = \"adapter\"\nwriter = \"r\"";

#[test]
fn pipes_of_a_network_device_go_either_way_and_each_brings_its_own_objects() {
    let keys = "period = \"5ms\"\nbytes = 1514";
    let second = |end: &str| {
        let process = "[[process]]\nname = \"s\"\npriority = 1\nvcpu = \"v\"\n";
        format!("[[pipe]]\nname = \"q\"\nto = \"adapter\"\nwriter = \"{end}\"\n{keys}\n{process}")
    };
    let both = |end: &str| adapter("gap = \"5ms\"\ntakes = \"1ms\"", READ, keys) + &second(end);
    let texts = [
        adapter("gap = \"5ms\"", READ, keys),
        adapter("takes = \"1ms\"", SENT, keys),
        both("s"),
        both("r"),
    ];
    let [from, to, apart, together] =
        texts.map(|text| parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}")));
    let objects = |system: &System| -> Vec<String> {
        let segments = system.segments.iter().map(|it| it.name.clone());
        let semaphores = system.semaphores.iter().map(|it| it.name.clone());
        segments.chain(semaphores).filter(|name| name.starts_with("network")).collect()
    };
    let [comes, goes] = [network::FROM, network::TO]
        .map(|names| [names.news, names.asks, names.data, names.ready].map(str::to_owned));
    for name in &comes {
        assert!(objects(&from).contains(name) && !objects(&to).contains(name), "{name}");
    }
    for name in &goes {
        assert!(objects(&to).contains(name) && !objects(&from).contains(name), "{name}");
    }
    for system in [&apart, &together] {
        let mut all = objects(system);
        assert_eq!(all.len(), comes.len() + goes.len() + 1, "{all:?}");
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), comes.len() + goes.len() + 1, "each once: {all:?}");
        let [from, to] = [&system.pipes[0], &system.pipes[1]];
        assert!(to.is_written() && !from.is_written());
        assert!(to.has_frames() && from.has_frames());
        assert_eq!((from.number + 1, from.usb), (to.number, to.usb));
    }
    // Neither end reaches what the other one has.
    let uses = |end: usize, name: &String| apart.processes[end].uses.contains(name);
    let writer = apart.processes.iter().position(|process| process.name == "s").unwrap();
    assert!(comes.iter().all(|name| uses(1, name) && !uses(writer, name)));
    assert!(goes.iter().all(|name| uses(writer, name) && !uses(1, name)));
}

#[test]
fn what_a_network_device_cannot_carry_is_refused_with_what_it_can() {
    let (gap, takes) = ("gap = \"5ms\"", "takes = \"1ms\"");
    for (device, ends, keys, wrong, remedy) in [
        (gap, READ, "period = \"5ms\"\nbytes = 1515", "has 1514 bytes at most", "bytes = 1514"),
        (gap, READ, "period = \"5ms\"\nstamp = 1507", "beyond its 1514", "stamp = 1506"),
        (gap, READ, "period = \"49us\"", "every 50us at most", "period = \"50us\""),
        (gap, READ, "period = \"5ms\"\nburst = 17", "keeps 16 messages", "burst = 16"),
        (gap, READ, "period = \"5ms\"\nendpoint = 2", "endpoint is known", "remove the key"),
        (takes, READ, "period = \"5ms\"", "nothing is written to `adapter`", "remove the key"),
        ("", SENT, "period = \"5ms\"", "nobody knows how long `adapter`", "takes = \"100us\""),
        (takes, SENT, "rate = 100", "how often it writes to", "period = \"5ms\""),
        (takes, SENT, "period = \"5ms\"\nstamp = 24", "bear their times", "it was written"),
        (takes, SENT, "period = \"5ms\"\nburst = 2", "one by one", "`burst`"),
    ] {
        let refused = parse("f", &adapter(device, ends, keys)).expect_err(keys).plain();
        assert!(refused.contains(wrong) && refused.contains(remedy), "{keys}: {refused}");
    }
    let second = format!("\n[[pipe]]\nname = \"q\"\n{SENT}\nperiod = \"5ms\"\n");
    let both = adapter(takes, SENT, "period = \"5ms\"") + &second;
    let refused = parse("f", &both).unwrap_err().plain();
    assert!(refused.contains("`adapter` has two pipes"), "{refused}");
    let in_qemu = adapter("", READ, "period = \"5ms\"").replace("\"network\"", "\"qemu-network\"");
    let refused = parse("f", &in_qemu).unwrap_err().plain();
    assert!(refused.contains("`adapter` has no channel that a pipe could carry"), "{refused}");
}

/// Nobody writes to such a device, so its time would be a promise that nothing holds.
#[test]
fn the_time_of_an_actuator_without_a_pipe_is_refused() {
    let actuator = |takes: &str| {
        let text = system(&pipe("period = \"41ms\""));
        format!(
            "{text}\n[[usb]]\nname = \"brake\"\non = \"xhci\"\nport = 2\n\
             model = \"actuator\"\n{takes}\n"
        )
    };
    let refused = parse("f", &actuator("takes = \"1ms\"")).unwrap_err().plain();
    assert!(refused.contains("nothing is written to `brake`"), "{refused}");
    parse("f", &actuator("")).unwrap_or_else(|wrong| panic!("{wrong}"));
}
