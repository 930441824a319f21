//! A hub and its ports: power, changes, resets, and a hub that lies.

use super::shell::{Asked, Shell, hostile};
use diapason_abi::Nanos;
use diapason_usb::class::hub::{DEBOUNCE, Hub, HubEvent, RESET_LOOK, RESET_TIME, TIER_MAX};
use diapason_usb::class::{Class, TransferFault};
use diapason_usb::descriptor::build::{Configuration as Make, Interface, interrupt};
use diapason_usb::descriptor::{self, Configuration};
use diapason_usb::{Setup, Speed};

fn hub(speed: Speed, tier: u8) -> Option<Hub> {
    let changes = Interface::new(0).class(9, 0, 0).endpoint(interrupt(0x81, 2, 8));
    let bytes = Make::new(1).with(changes).bytes(speed);
    Hub::find(&Configuration::parse_once(&bytes, speed).unwrap(), tier)
}

/// The far side: ports with a status and changes.
struct Far {
    descriptor: descriptor::HubDescriptor,
    ports: [(u16, u16); 16],
    log: Vec<Setup>,
}

impl Far {
    fn new(superspeed: bool, ports: u8) -> Far {
        let descriptor = descriptor::HubDescriptor {
            superspeed,
            ports,
            characteristics: 9,
            power_good: Nanos::from_millis(100),
            fixed: 0,
        };
        Far { descriptor, ports: [(0, 0); 16], log: Vec::new() }
    }

    fn answer(&mut self, setup: Setup) -> Vec<u8> {
        self.log.push(setup);
        let port = &mut self.ports[usize::from(setup.index & 15)];
        match (setup.kind, setup.request, setup.value) {
            (0xa0, 6, _) => return self.descriptor.bytes(),
            (0xa3, 0, _) => {
                let [s, c] = [port.0.to_le_bytes(), port.1.to_le_bytes()];
                return [s, c].concat();
            }
            (0x23, 1, 1) => port.0 &= !2,
            (0x23, 1, feature @ 16..=20) => port.1 &= !(1 << (feature - 16)),
            (0x23, 1, 29) => port.1 &= !(1 << 5),
            (0x23, 1, 25) => port.1 &= !(1 << 6),
            (0x23, 1, 26) => port.1 &= !(1 << 7),
            (0x23, 3, 4) => *port = (port.0 | 2, port.1 | 1 << 4),
            _ => {}
        }
        Vec::new()
    }

    /// Bits of ports that have changes.
    fn bitmap(&self) -> [u8; 2] {
        let bits = (1..16).filter(|n| self.ports[*n].1 != 0).fold(0u16, |all, n| all | 1 << n);
        bits.to_le_bytes()
    }
}

/// Answers all control requests; then lets the hub report its changes, until there are none.
fn run(shell: &mut Shell<Hub>, far: &mut Far) -> Vec<HubEvent> {
    let mut heard = Vec::new();
    shell.settle(&mut |event| heard.push(event));
    for _ in 0..1000 {
        if let Some(Asked::Control(setup, _)) = shell.next(0).cloned() {
            let bytes = far.answer(setup);
            shell.end(0, Ok(&bytes), &mut |event| heard.push(event));
        } else if shell.next(0x81).is_some() && far.bitmap() != [0, 0] {
            let bits = far.bitmap();
            shell.end(0x81, Ok(&bits), &mut |event| heard.push(event));
        } else {
            return heard;
        }
    }
    panic!("it never ends");
}

fn wake(shell: &mut Shell<Hub>, far: &mut Far) -> Vec<HubEvent> {
    let mut heard = Vec::new();
    shell.wake(&mut |event| heard.push(event));
    heard.extend(run(shell, far));
    heard
}

/// Returns a hub that works, with nothing plugged in.
fn ready(speed: Speed, ports: u8) -> (Shell<Hub>, Far) {
    let mut shell = Shell::new(hub(speed, 2).unwrap());
    let mut far = Far::new(speed == Speed::Super, ports);
    assert_eq!(run(&mut shell, &mut far), []);
    let heard = wake(&mut shell, &mut far);
    assert_eq!(shell.now, Nanos::from_millis(100));
    assert_eq!(heard, [HubEvent::Ready(far.descriptor)]);
    (shell, far)
}

#[test]
fn a_hub_is_switched_on_port_by_port() {
    for (speed, ports) in [(Speed::High, 4), (Speed::High, 15), (Speed::Super, 4)] {
        let (shell, far) = ready(speed, ports);
        let power: Vec<_> = far.log.iter().filter(|s| (s.request, s.value) == (3, 8)).collect();
        assert_eq!(
            power.iter().map(|s| s.index).collect::<Vec<_>>(),
            (1..=ports.into()).collect::<Vec<_>>()
        );
        let depth = far.log.iter().any(|s| (s.kind, s.request, s.value) == (0x20, 12, 2));
        assert_eq!(depth, speed == Speed::Super);
        assert_eq!(shell.class.next_wake(), Nanos::FOREVER);
    }
    assert!(hub(Speed::High, TIER_MAX).is_some() && hub(Speed::High, TIER_MAX + 1).is_none());
}

#[test]
fn a_device_comes_is_reset_and_goes() {
    for (speed, status, found) in [
        (Speed::High, 0x101, Speed::Full),
        (Speed::High, 0x301, Speed::Low),
        (Speed::High, 0x501, Speed::High),
        (Speed::Super, 0x201, Speed::Super),
    ] {
        let (mut shell, mut far) = ready(speed, 4);
        assert!(!shell.class.reset(3));
        far.ports[3] = (status, 1);
        assert_eq!(run(&mut shell, &mut far), []);
        let since = shell.now;
        assert_eq!(wake(&mut shell, &mut far), [HubEvent::Connected { port: 3 }]);
        assert_eq!(shell.now, since + DEBOUNCE);
        assert!(shell.class.reset(3));
        assert_eq!(run(&mut shell, &mut far), [HubEvent::Enabled { port: 3, speed: found }]);
        far.ports[3] = (0x100, 1);
        assert_eq!(run(&mut shell, &mut far), [HubEvent::Disconnected { port: 3 }]);
        assert_eq!(far.ports[3].1, 0);
    }
}

#[test]
fn a_bouncing_plug_and_a_quick_swap_are_seen() {
    let (mut shell, mut far) = ready(Speed::High, 4);
    far.ports[1] = (0x101, 1);
    assert_eq!(run(&mut shell, &mut far), []);
    shell.now += Nanos::from_millis(60);
    far.ports[1] = (0x101, 1);
    assert_eq!(run(&mut shell, &mut far), []);
    let since = shell.now;
    assert_eq!(wake(&mut shell, &mut far), [HubEvent::Connected { port: 1 }]);
    assert_eq!(shell.now, since + DEBOUNCE);
    // Out and in again between two looks: another device.
    far.ports[1] = (0x101, 1);
    assert_eq!(run(&mut shell, &mut far), [HubEvent::Disconnected { port: 1 }]);
    assert_eq!(wake(&mut shell, &mut far), [HubEvent::Connected { port: 1 }]);
    far.ports[1] = (0x108, 8);
    let heard = run(&mut shell, &mut far);
    assert_eq!(heard, [HubEvent::OverCurrent { port: 1 }, HubEvent::Disconnected { port: 1 }]);
}

#[test]
fn a_reset_that_does_not_end_is_given_up() {
    let (mut shell, mut far) = ready(Speed::High, 4);
    far.ports[2] = (0x101, 1);
    run(&mut shell, &mut far);
    wake(&mut shell, &mut far);
    shell.class.reset(2);
    shell.pull();
    let reset = Setup { kind: 0x23, request: 3, value: 4, index: 2, length: 0 };
    assert_eq!(shell.next(0), Some(&Asked::Control(reset, vec![])));
    let (since, mut heard) = (shell.now, Vec::new());
    shell.end(0, Ok(&[]), &mut |event| heard.push(event));
    // It is asked again and again, and says that it still is at it.
    let mut asked = 0;
    while heard.is_empty() && asked < 100 {
        shell.wake(&mut |event| heard.push(event));
        shell.settle(&mut |event| heard.push(event));
        if shell.next(0).is_some() {
            asked += 1;
            shell.end(0, Ok(&[0x11, 1, 0, 0]), &mut |event| heard.push(event));
        }
    }
    assert_eq!(asked, RESET_TIME.0.div_ceil(RESET_LOOK.0) - 1);
    assert_eq!(
        (shell.now, &heard[..]),
        (since + RESET_TIME, &[HubEvent::NotEnabled { port: 2 }][..])
    );
}

#[test]
fn hubs_that_lie_are_refused() {
    let mut far = Far::new(false, 4);
    for wrong in
        [vec![], far.descriptor.bytes()[..8].to_vec(), Far::new(true, 4).descriptor.bytes()]
    {
        let mut shell = Shell::new(hub(Speed::High, 0).unwrap());
        shell.pull();
        let mut heard = Vec::new();
        shell.end(0, Ok(&wrong), &mut |event| heard.push(event));
        assert_eq!((&heard[..], shell.next(0)), (&[HubEvent::Failed][..], None));
    }
    // Changes of ports that are not there.
    far.descriptor.ports = 2;
    let (mut shell, _) = ready(Speed::High, 2);
    shell.end(0x81, Ok(&[0xf9, 0xff]), &mut |_| {});
    assert_eq!(shell.next(0), None);
    // A hub that stops answering.
    shell.end(0x81, Ok(&[2]), &mut |_| {});
    let mut heard = Vec::new();
    shell.end(0, Err(TransferFault::Damaged), &mut |event| heard.push(event));
    assert_eq!(heard, [HubEvent::Failed]);
}

#[test]
fn whatever_a_hub_says() {
    let seeds: Vec<Vec<u8>> = [(0x101, 1), (0x103, 16), (0x100, 1), (0x108, 8), (0, 0), (0x503, 0)]
        .iter()
        .map(|(status, change): &(u16, u16)| [status.to_le_bytes(), change.to_le_bytes()].concat())
        .chain([vec![0xfe, 0xff]])
        .collect();
    let honest = |asked: &Asked, _: &[Vec<u8>]| match asked {
        Asked::Control(Setup { request: 6, .. }, _) => Some(Far::new(false, 7).descriptor.bytes()),
        Asked::Control(Setup { request: 0, .. }, _) => Some(vec![3, 1, 0, 0]),
        Asked::Control(..) => Some(vec![]),
        _ => None,
    };
    // Whether a device is known to be at a port of this life.
    let mut there = [false; 16];
    let (mut connected, mut enabled) = (0, 0);
    hostile(
        (8, false),
        100_000,
        &seeds,
        &honest,
        |_| hub(Speed::High, 0).unwrap(),
        |class, _, random| {
            let port = random.below(9) as u8;
            match random.below(20) {
                0 => class.disable(port),
                1 => class.power(port),
                2..=9 => drop(class.reset(port)),
                _ => {}
            }
        },
        &mut |event| match event {
            HubEvent::Ready(_) => there = [false; 16],
            HubEvent::Connected { port } => {
                connected += 1;
                assert!(!std::mem::replace(&mut there[usize::from(port)], true));
            }
            HubEvent::Enabled { port, .. } => {
                enabled += 1;
                assert!(there[usize::from(port)]);
            }
            HubEvent::OverCurrent { port } | HubEvent::NotEnabled { port } => {
                assert!((1..8).contains(&port))
            }
            HubEvent::Disconnected { port } => there[usize::from(port)] = false,
            HubEvent::Failed => {}
        },
    );
    assert!(connected > 300 && enabled > 100, "{connected} {enabled}");
}
