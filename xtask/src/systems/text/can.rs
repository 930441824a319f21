//! The interface, its server, the pipes from and to it, and their chains.

use super::classes::{client, granted, interval, watches, word};
use super::{quoted, vcpu, work};
use crate::systems::drawn::{
    Budget, DrawnOutput, DrawnPipe, Gadget, Interface, KBITS, Onward, SECOND, SENT, TRAFFIC,
};
use std::fmt::Write;

/// Channels whose numbered messages have long identifiers.
const EXTENDED: [usize; 2] = [1, 3];
/// A bus with fewer messages a second may be a slow one.
const SLOW: u64 = 500;

/// The names of the Main VCPUs, in the order of the text.
pub fn mains(can: &Interface) -> Vec<String> {
    let mut names = vec![String::from("usb-manage")];
    let mut seats: Vec<String> = can.pipes.iter().map(|pipe| seat(can, pipe)).collect();
    seats.dedup();
    names.extend(seats);
    names.extend(can.second.iter().map(|_| format!("read-{SECOND}")));
    names.extend(writers(can));
    if can.pipes.iter().any(|pipe| matches!(pipe.chain, Some(Onward::Shown(..)))) {
        names.push(String::from("shows"));
    }
    names.extend(relay(can).map(|_| String::from("controls")));
    names.extend(can.classes.iter().map(|class| format!("use-{}", word(*class))));
    names.extend(can.classes.iter().filter_map(|class| watches(*class)).map(str::to_owned));
    if can.tuned {
        names.extend(["usb-tune", "hostile-main"].map(String::from));
    }
    names
}

/// Returns the pipe that is passed on to a channel, and that channel.
fn relay(can: &Interface) -> Option<(&DrawnPipe, u64)> {
    can.pipes.iter().find_map(|pipe| match pipe.chain {
        Some(Onward::Relayed(to, ..)) => Some((pipe, to)),
        _ => None,
    })
}

/// Returns the names of the VCPUs of writers.
fn writers(can: &Interface) -> impl Iterator<Item = String> {
    let outputs = can.outputs.iter().map(|output| output.channel);
    let all = outputs.chain(relay(can).map(|(_, to)| to));
    all.map(|channel| format!("write-{channel}"))
}

/// Writes the server with the interface, and everything that it serves.
pub fn interface(can: &Interface, name: &str) -> String {
    let mut text = server(can);
    text += &vcpu("usb-manage", can.manage, "");
    text += &halves(can);
    for name in ["usbd.receive", "usbd.manage"] {
        text += &work(name, can.works * 1_000);
    }
    let takes = can.pipes.iter().chain(&can.second).map(|pipe| pipe.takes);
    let takes = takes.max().unwrap_or_default();
    text += &if takes > 0 { work("can.message", takes) } else { String::new() };
    text += "\n[[segment]]\nname = \"usb-rings\"\nsize = \"512K\"\ndma = true\n";
    text += "\n[[segment]]\nname = \"usb-buffers\"\nsize = \"96K\"\ndma = true\n";
    text += if can.behind_hub {
        "\n[[usb]]\nname = \"hub\"\non = \"xhci\"\nport = 1\nmodel = \"hub\"\n\
         \n[[usb]]\nname = \"interface\"\nbehind = \"hub\"\nport = 1\nmodel = \"usb-can\"\n"
    } else {
        "\n[[usb]]\nname = \"interface\"\non = \"xhci\"\nport = 1\nmodel = \"usb-can\"\n"
    };
    let written: Vec<String> = writers(can).map(|name| name.replace("write-", "can")).collect();
    let sent = (0..).zip(SENT);
    let replayed: Vec<u64> = can.replayed().collect();
    let is_quiet =
        |channel| replayed.contains(&channel) || written.contains(&format!("can{channel}"));
    let sent = sent.map(|(channel, sent)| if is_quiet(channel) { 0 } else { sent });
    let channels = channels(can, &written);
    if channels < SENT.len() {
        let _ = writeln!(text, "channels = {channels}");
    }
    if can.kbits != KBITS {
        let rate = |sent: &u64| if *sent < SLOW { can.kbits } else { can.kbits.max(KBITS) };
        let rates: Vec<u64> = SENT[..channels].iter().map(|sent| 1_000 * rate(sent)).collect();
        let _ = writeln!(text, "bit_rates = {rates:?}");
    }
    let _ = writeln!(text, "traffic = {:?}", sent.take(channels).collect::<Vec<u64>>());
    let extended = EXTENDED.into_iter().filter(|channel| *channel < channels);
    let extended = extended.filter(|channel| !is_quiet(*channel as u64));
    let extended: Vec<String> = extended.map(|channel| format!("can{channel}")).collect();
    let _ = writeln!(text, "extended = [{}]", quoted(&extended));
    if !replayed.is_empty() {
        let log = |channel: &u64| format!("can{channel}={name}-can{channel}.log");
        let logs: Vec<String> = replayed.iter().map(log).collect();
        let _ = writeln!(text, "replay = [{}]", quoted(&logs));
    }
    if !written.is_empty() {
        let _ = writeln!(text, "receivers = [{}]", quoted(&written));
        text += "turn = [\"325400ns\", \"327500ns\"]\n";
    }
    can.pipes.iter().for_each(|pipe| text += &reader(can, pipe));
    text += &second(can);
    can.outputs.iter().for_each(|output| text += &writer(output));
    can.pipes.iter().for_each(|pipe| text += &chain(pipe));
    for (number, class) in can.classes.iter().enumerate() {
        text += &client(*class, number + 2, can.stretch);
    }
    if can.tuned {
        let server =
            |budget, period| Budget { budget: budget * can.stretch, period: period * can.stretch };
        text += &vcpu("usb-tune", server(500_000, 10_000_000), "");
        text += &vcpu("hostile-main", server(50_000, 10_000_000), "");
        text += TUNED;
    }
    text
}

/// Returns how many channels the interface has; of one with few the last is used. A tuned pipe may
/// be of any.
fn channels(can: &Interface, written: &[String]) -> usize {
    let is_used = |channel: &usize| {
        can.pipes.iter().any(|pipe| pipe.channel == *channel as u64)
            || written.contains(&format!("can{channel}"))
    };
    let is_few = can.few && !can.tuned && can.second.is_none();
    let last = (0..SENT.len()).rfind(is_used).filter(|_| is_few);
    last.map_or(SENT.len(), |last| last + 1)
}

/// Returns the process of the server, and the controller that it drives.
fn server(can: &Interface) -> String {
    let seconds = usize::from(can.second.is_some());
    let messages = 2 + seconds + can.classes.len();
    let asked = |class: &&Gadget| {
        matches!(
            class,
            Gadget::Disk(_)
                | Gadget::Blocks(..)
                | Gadget::SecondBlocks(..)
                | Gadget::Network(_)
                | Gadget::Frames(..)
                | Gadget::Sink(..)
        )
    };
    let sends = writers(can).count() > 0;
    let more = can.classes.iter().filter(asked).count() + usize::from(sends);
    let threads = messages + 2 * usize::from(can.tuned) + more + 1;
    let events = messages + usize::from(sends) + usize::from(can.tuned);
    let locks = messages + 1;
    let classes: String = can.classes.iter().map(|class| granted(*class)).collect();
    let sends = if sends { ", \"usb-send\"" } else { "" };
    let tunes = if can.tuned { ", \"usb-tune\"" } else { "" };
    let second = if seconds > 0 { ", \"usb-receive1\"" } else { "" };
    let mut text = format!(
        "\n[[process]]\nname = \"usbd\"\npriority = 40\nvcpu = \"usb-manage\"\nheap = \"512K\"\n\
         stack = \"72K\"\nthreads = {threads}\nsemaphores = {locks}\nevents = {events}\nuses = [\
         \"xhci\", \"usb-rings\", \"usb-buffers\", \"usb-receive\"{second}{sends}{classes}\
         {tunes}]\n"
    );
    if !can.classes.is_empty() || can.behind_hub {
        text += &settings(can);
    }
    let intervals = can.classes.iter().map(|class| format!(", \"{}\"", interval(*class)));
    let second = [", \"990us\""].into_iter().take(seconds).map(String::from);
    let intervals: String = second.chain(intervals).collect();
    text + &format!(
        "\n[[device]]\nname = \"xhci\"\npci = \"0c0330\"\nsize = \"16K\"\nirqs = {messages}\n\
         interval = [\"1990us\", \"990us\"{intervals}]\n"
    )
}

/// Returns the classes that the server serves, in the order of its messages.
fn settings(can: &Interface) -> String {
    let is_before = |class: &&Gadget| {
        !matches!(
            class,
            Gadget::Network(_) | Gadget::Frames(..) | Gadget::Endpoint(..) | Gadget::Sink(..)
        )
    };
    let (before, after): (Vec<Gadget>, Vec<Gadget>) = can.classes.iter().partition(is_before);
    let is_second = |class: &&Gadget| {
        matches!(
            class,
            Gadget::SecondPictures(..) | Gadget::SecondSamples(_) | Gadget::SecondBlocks(..)
        )
    };
    let name = |class: Gadget| format!("{}s", word(class));
    let hubs = can.behind_hub.then(|| String::from("hubs"));
    let first = [String::from("can")]
        .into_iter()
        .chain(before.iter().filter(|it| !is_second(it)).map(|it| name(*it)));
    let all: Vec<String> = first.chain(hubs).chain(after.into_iter().map(name)).collect();
    format!("\n[process.settings]\nserves = [{}]\n", quoted(&all))
}

/// Returns the VCPUs of the bottom halves of the interface.
fn halves(can: &Interface) -> String {
    let mut served: Vec<String> = can.pipes.iter().map(|pipe| seat(can, pipe)).collect();
    served.extend(writers(can));
    if can.tuned || served.is_empty() {
        served.push(String::from("usb-manage"));
    }
    served.sort_unstable();
    served.dedup();
    let served = quoted(&served);
    let mut text = format!(
        "\n[[vcpu]]\nname = \"usb-receive\"\nkind = \"io\"\nutilization = \"{}%\"\n\
         interval = \"990us\"\nserves = [{served}]\n",
        can.share
    );
    if writers(can).count() > 0 {
        // It is woken by what is written, and by the end of its rest.
        let _ = write!(
            text,
            "\n[[vcpu]]\nname = \"usb-send\"\nkind = \"io\"\nutilization = \"{}%\"\n\
             interval = \"990us\"\nwakes = 2\nserves = [{served}]\n",
            (can.share / 4).max(1)
        );
        text += &work("usbd.send", can.works * 1_000);
    }
    if can.second.is_some() {
        let _ = write!(
            text,
            "\n[[vcpu]]\nname = \"usb-receive1\"\nkind = \"io\"\nutilization = \"{}%\"\n\
             interval = \"990us\"\nserves = [\"read-{SECOND}\"]\n",
            can.share
        );
    }
    text
}

/// Returns the second interface, and the pipe from its channel.
fn second(can: &Interface) -> String {
    let Some(pipe) = &can.second else { return String::new() };
    let sent = SENT[pipe.channel as usize];
    let port = 2 + can.classes.len();
    let device = format!(
        "\n[[usb]]\nname = \"second\"\non = \"xhci\"\nport = {port}\nmodel = \"usb-can\"\n\
         channels = 1\ntraffic = [{sent}]\n"
    );
    let seat = format!("read-{SECOND}");
    let list = format!("replenishments = {}\n", pipe.replenishments);
    device
        + &read_by(("second", 0), SECOND, pipe, &seat, "can-reader", 0)
        + &vcpu(&seat, pipe.server, &list)
}

/// Returns the name of the VCPU of a pipe's reader.
fn seat(can: &Interface, pipe: &DrawnPipe) -> String {
    let before = can.pipes.iter().take_while(|other| *other != pipe);
    let owns = |other: &&DrawnPipe| !other.shares && other.chain.is_none();
    let owner = if pipe.shares { before.filter(owns).last() } else { None };
    format!("read-{}", owner.unwrap_or(pipe).channel)
}

fn rate(pipe: &DrawnPipe) -> u64 {
    (TRAFFIC[pipe.channel as usize] * pipe.rate / 100).max(1)
}

fn reader(can: &Interface, pipe: &DrawnPipe) -> String {
    let (channel, seat) = (pipe.channel, seat(can, pipe));
    let (program, how) = match pipe.chain {
        None => ("can-reader", 0),
        Some(Onward::Shown(..)) => ("gateway-in", 1),
        Some(Onward::Relayed(..)) => ("gateway-in", 0),
    };
    let mut text = read_by(("interface", channel), channel, pipe, &seat, program, how);
    if seat == format!("read-{channel}") {
        let rest = format!("replenishments = {}\n", pipe.replenishments);
        text += &vcpu(&seat, pipe.server, &rest);
    }
    text
}

/// Returns a pipe from a channel of a device, and its reader; `number` is that of the channel among
/// all of the host.
fn read_by(
    (device, channel): (&str, u64),
    number: u64,
    pipe: &DrawnPipe,
    seat: &str,
    program: &str,
    how: u64,
) -> String {
    let DrawnPipe { burst, work, jitter, .. } = pipe;
    let rate = rate(pipe);
    let jitter = if *jitter > 0 { format!("jitter = \"{jitter}us\"\n") } else { String::new() };
    format!(
        "\n[[pipe]]\nname = \"pipe-{number}\"\nfrom = \"{device}\"\nchannel = {channel}\n\
         reader = \"reader-{number}\"\nrate = {rate}\nburst = {burst}\n\
         work = \"{work}ns\"\n{jitter}\
         \n[[process]]\nname = \"reader-{number}\"\nprogram = \"{program}\"\npriority = 30\n\
         vcpu = \"{seat}\"\narguments = [{number}, 0, {how}]\n"
    )
}

/// Returns a pipe to a channel, with the VCPU of its writer.
fn pipe_to(channel: u64, (rate, burst): (u64, u64), server: Budget, list: u64) -> String {
    let seat = vcpu(&format!("write-{channel}"), server, &format!("replenishments = {list}\n"));
    format!(
        "\n[[pipe]]\nname = \"out-{channel}\"\nto = \"interface\"\nchannel = {channel}\n\
         writer = \"writer-{channel}\"\nrate = {rate}\nburst = {burst}\n{seat}"
    )
}

fn writer(output: &DrawnOutput) -> String {
    let DrawnOutput { channel, rate, burst, server, replenishments } = output;
    // The time between two fillings of the pipe.
    let every = (burst * 1_000_000).div_ceil(*rate);
    format!(
        "{}\n[[process]]\nname = \"writer-{channel}\"\nprogram = \"can-writer\"\npriority = 30\n\
         vcpu = \"write-{channel}\"\nstack = \"32K\"\n\
         arguments = [{channel}, 0, {every}, {burst}]\n",
        pipe_to(*channel, (*rate, *burst), *server, *replenishments)
    )
}

/// Returns the threads behind the reader of a pipe.
fn chain(pipe: &DrawnPipe) -> String {
    let from = pipe.channel;
    match pipe.chain {
        None => String::new(),
        Some(Onward::Shown(every, server)) => format!(
            "\n[[chain]]\nname = \"panel\"\nfrom = \"pipe-{from}\"\n\
             \n[[chain.link]]\nprocess = \"display\"\nby = \"newest\"\nevery = \"{every}us\"\n\
             work = \"25us\"\n\n[[segment]]\nname = \"newest\"\nsize = \"4K\"\n\
             \n[[process]]\nname = \"display\"\nprogram = \"gateway-display\"\npriority = 30\n\
             vcpu = \"shows\"\narguments = [{every}, 0]\n{}{}",
            vcpu("shows", server, ""),
            work("gateway.display", 2_000)
        ),
        Some(Onward::Relayed(to, control, writer)) => format!(
            "\n[[chain]]\nname = \"gateway\"\nfrom = \"pipe-{from}\"\nto = \"out-{to}\"\n\
             \n[[chain.link]]\nprocess = \"control\"\nby = \"readings\"\nwork = \"25us\"\n\
             \n[[chain.link]]\nprocess = \"writer-{to}\"\nby = \"commands\"\nwork = \"5us\"\n\
             \n[[mailbox]]\nname = \"readings\"\nmessages = 64\n\
             \n[[mailbox]]\nname = \"commands\"\nmessages = 64\n\
             \n[[process]]\nname = \"control\"\nprogram = \"gateway-control\"\npriority = 30\n\
             vcpu = \"controls\"\n{}{}{}\
             \n[[process]]\nname = \"writer-{to}\"\nprogram = \"gateway-out\"\npriority = 30\n\
             vcpu = \"write-{to}\"\nstack = \"64K\"\narguments = [{to}, 0]\n",
            vcpu("controls", control, ""),
            work("gateway.control", 2_000),
            pipe_to(to, (rate(pipe), 32), writer, 8)
        ),
    }
}

/// A place for a pipe, and a program that asks nonsense of the server without end.
const TUNED: &str = r#"
[[work]]
name = "usbd.tune"
worst = "40us"

[[work]]
name = "tuned.message"
worst = "3us"

[[tpipe]]
name = "hostile-pipe"
from = "interface"
reader = "hostile"
channels = [0, 1, 2, 3, 4]
rate = 400
burst = 4
budget = "200us"
period = "10ms"

[[process]]
name = "hostile"
program = "tuned-hostile"
priority = 30
vcpu = "hostile-main"
threads = 2
stack = "32K"
arguments = [0, 1]
"#;
