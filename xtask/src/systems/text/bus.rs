//! A bus with the controller, its driver, and the programs that send and read.

use super::{vcpu, work};
use crate::systems::drawn::{DrawnBus, DrawnEar, DrawnSender};
use std::fmt::Write;

/// Frames that are destroyed.
const FAULTS: u64 = 8;

/// Returns the names of the Main VCPUs, in the order of the text.
pub fn mains(bus: &DrawnBus) -> Vec<String> {
    let senders = (0..bus.senders.len()).map(|number| format!("send-{number}"));
    let readers = (0..bus.readers.len()).map(|number| format!("hear-{number}"));
    senders.chain(readers).chain([String::from("driver-own")]).collect()
}

/// Writes the bus and everybody on it.
pub fn bus(bus: &DrawnBus) -> String {
    let DrawnBus { kbits, others, driver, replenishments, .. } = bus;
    let mut text = format!(
        "\n[[can]]\nname = \"drive\"\nrate = {kbits}000\ncontroller = \"toucan0\"\n{}{}\
         \n[[message]]\nname = \"other\"\nbus = \"drive\"\nnode = \"unit\"\n\
         period = \"{others}us\"\nbytes = 8\n",
        errors(bus),
        schedule(bus)
    );
    text += &destroyed(bus);
    for (number, one) in bus.senders.iter().enumerate() {
        text += &sender(bus, number, one);
    }
    for (number, one) in bus.readers.iter().enumerate() {
        text += &reader(number, one);
    }
    let seat = vcpu("driver-own", *driver, &format!("replenishments = {replenishments}\n"));
    let _ = write!(
        text,
        "\n[[process]]\nname = \"driver\"\nprogram = \"cand\"\npriority = 30\n\
         vcpu = \"driver-own\"\nstack = \"64K\"\nthreads = 2\nsemaphores = 1\nevents = 1\n\
         uses = [\"toucan0\"]\n{seat}\
         \n[[device]]\nname = \"toucan0\"\npci = \"0c0900\"\nsize = \"4K\"\nirqs = 1\n\
         interval = \"40us\"\n"
    );
    let works = ["cand.serve", "cand.find", "cand.message"].into_iter().zip(bus.works);
    text += &works.map(|(name, nanos)| work(name, nanos)).collect::<String>();
    text += &work("cand.renew", bus.works[0] + bus.works[2]);
    text += &work("cand.hear", bus.works[2]);
    // All readers run one program, so it takes no longer than the shortest of them may.
    if let Some(used) = bus.readers.iter().map(|reader| reader.work).min() {
        text += &work("message.use", used * 1_000);
    }
    text + &work("message.make", 1_000)
}

/// Returns how often frames may be destroyed. Two are closer than the faults that destroy them if
/// the first had to wait for a frame.
fn errors(bus: &DrawnBus) -> String {
    match bus.errors {
        0 => String::new(),
        apart => format!("error_interval = \"{apart}ms\"\nerror_burst = 2\n"),
    }
}

/// Returns the faults that destroy frames, as often as they may be.
fn destroyed(bus: &DrawnBus) -> String {
    let times = (1..=FAULTS).map(|number| 100 + number * bus.errors);
    let times = times.filter(|_| bus.errors > 0);
    times.fold(String::new(), |text, at| {
        text + &format!(
            "\n[[fault]]\nat = \"{at}ms\"\nwhat = \"can-errors\"\ndevice = \"toucan0\"\n\
             count = 1\n"
        )
    })
}

/// Returns the keys of the scheduler. Under MTS the nodes renew as soon as a message is in its
/// buffer, and another unit sends the time.
fn schedule(bus: &DrawnBus) -> String {
    let DrawnBus { own, jitter, .. } = bus;
    if !bus.on_time {
        return format!("scheduler = \"deadline-monotonic\"\nown_buffers = {own}\n");
    }
    format!(
        "scheduler = \"mts\"\nown_buffers = {own}\nepoch = \"{}us\"\nclocks = \"90us\"\n\
         renewal = \"{jitter}us\"\ntime = \"time\"\ntime_read = \"20us\"\ntime_losses = {}\n\
         \n[[message]]\nname = \"time\"\nbus = \"drive\"\nnode = \"clock-unit\"\nclass = \"low\"\n\
         period = \"20ms\"\nbytes = 8\n\
         \n[[message]]\nname = \"near\"\nbus = \"drive\"\nnode = \"clock-unit\"\n\
         period = \"4ms\"\nbytes = 8\n",
        10_000 + 8 * jitter,
        if bus.errors > 0 { 2 } else { 1 }
    )
}

fn reader(number: usize, reader: &DrawnEar) -> String {
    let DrawnEar { messages, work, server } = reader;
    let mut text = String::new();
    for (place, (period, deadline)) in messages.iter().enumerate() {
        let _ = write!(
            text,
            "\n[[message]]\nname = \"heard-{number}-{place}\"\nbus = \"drive\"\n\
             node = \"unit-{number}-{place}\"\nreader = \"ear-{number}\"\nwork = \"{work}us\"\n\
             period = \"{period}us\"\ndeadline = \"{deadline}us\"\nbytes = 8\n"
        );
    }
    let seat = format!("hear-{number}");
    text + &format!(
        "\n[[process]]\nname = \"ear-{number}\"\nprogram = \"message-reader\"\npriority = 20\n\
         vcpu = \"{seat}\"\nstack = \"32K\"\n{}",
        vcpu(&seat, *server, "replenishments = 4\n")
    )
}

fn sender(bus: &DrawnBus, number: usize, sender: &DrawnSender) -> String {
    let DrawnSender { messages, apart, often, server } = sender;
    let mut text = String::new();
    for (place, (period, bytes)) in messages.iter().enumerate() {
        let _ = write!(
            text,
            "\n[[message]]\nname = \"message-{number}-{place}\"\nbus = \"drive\"\n\
             process = \"sender-{number}\"\nperiod = \"{period}ms\"\njitter = \"{}us\"\n\
             bytes = {bytes}\n",
            bus.jitter
        );
    }
    let seat = format!("send-{number}");
    text + &format!(
        "\n[[process]]\nname = \"sender-{number}\"\nprogram = \"message-sender\"\npriority = 20\n\
         vcpu = \"{seat}\"\nstack = \"32K\"\narguments = [0, {apart}, {often}]\n{}",
        vcpu(&seat, *server, "replenishments = 2\n")
    )
}
