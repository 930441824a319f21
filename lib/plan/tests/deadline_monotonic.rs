//! The messages of `examples/can-mts.toml` under deadline-monotonic identifiers: the plan refuses
//! them, and on the simulated bus one of them is late.

use diapason_abi::Nanos;
use diapason_can::bus::{Bus, EventKind, NodeSetup};
use diapason_can::mts::Unmet;
use diapason_can::{AnyFrame, BitRate, CanFrame, Id, wire};
use diapason_plan::Plan;
use diapason_plan::can::{CanName, CanOutcome};
use diapason_system::parse;

const EXAMPLE: &str = include_str!("../../../examples/can-mts.toml");
/// All messages of high speed come at once.
const TOGETHER: Nanos = Nanos::from_millis(1);

/// A message as the bus has it.
struct Stream {
    name: String,
    frame: CanFrame,
    period: Nanos,
    deadline: Nanos,
}

/// Returns the longest frame of this identifier among those whose bytes are equal.
fn longest(id: Id, bytes: u8) -> CanFrame {
    let content = |byte: u8| CanFrame::data(id, &[byte; 8][..usize::from(bytes)]).unwrap();
    (0..=u8::MAX).map(content).max_by_key(wire::length).unwrap()
}

/// Returns the messages, the most urgent first, and the longest that `limits` takes by the plan.
fn streams() -> (Vec<Stream>, Nanos) {
    let by_deadline = EXAMPLE.replace("\"mts\"", "\"deadline-monotonic\"");
    let lines = by_deadline.lines().filter(|line| !line.starts_with("time"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    let system = parse("f", &text).unwrap_or_else(|found| panic!("{}", found.plain()));
    let plan = Plan::of(&system);
    let (mut all, mut bound) = (Vec::new(), None);
    for (message, promise) in system.cans[0].messages.iter().zip(&plan.cans[0].messages) {
        let Some(CanName::Fixed(id)) = promise.name else { panic!("it has an identifier") };
        if let CanOutcome::Unmet(Unmet::Response { response, .. }) = &promise.outcome {
            assert_eq!(message.name, "limits", "no other is refused");
            bound = Some(*response);
        }
        let [period, deadline] = [message.period_ns, message.deadline_ns].map(|it| it.unwrap());
        let (period, deadline) = (Nanos(period), Nanos(deadline));
        let frame = longest(id, message.bytes);
        all.push(Stream { name: message.name.clone(), frame, period, deadline });
    }
    all.sort_by_key(|stream| match stream.frame.id() {
        Id::Standard(id) => id.as_raw(),
        Id::Extended(_) => panic!("an extended one"),
    });
    (all, bound.expect("it is refused"))
}

#[test]
fn by_deadlines_one_of_the_messages_is_late_on_the_bus() {
    let (all, bound) = streams();
    let place = all.iter().position(|stream| stream.name == "limits").unwrap();
    let (high, low) = all.split_at(place + 1);
    let blocker = low.iter().max_by_key(|stream| wire::length(&stream.frame)).unwrap();
    let rate = BitRate::new(1_000_000).unwrap();
    let mut bus = Bus::new(rate);
    let mut node = || bus.add_node(NodeSetup { queue: 64, ..NodeSetup::default() });
    let (nodes, other): (Vec<_>, _) = (high.iter().map(|_| node()).collect(), node());
    let mut comings: Vec<(Nanos, usize)> = Vec::new();
    for (number, stream) in high.iter().enumerate() {
        comings.extend((0..20).map(|nth| (TOGETHER + Nanos(nth * stream.period.0), number)));
    }
    comings.sort_unstable();
    bus.send(TOGETHER - rate.time(2), other, blocker.frame).unwrap();
    let mut came = Vec::new();
    for (at, number) in comings {
        bus.send(at, nodes[number], high[number].frame).unwrap();
        came.extend((number == place).then_some(at));
    }
    bus.advance(TOGETHER + Nanos(20 * high[place].period.0));
    let (mut ended, limits) = (Vec::new(), high[place].frame.id());
    while let Some(event) = bus.poll() {
        if let EventKind::Sent { frame: AnyFrame::Classic(frame), .. } = event.kind
            && frame.id() == limits
        {
            ended.push(event.time);
        }
    }
    let took = came.iter().zip(&ended).map(|(came, ended)| *ended - *came).max().unwrap();
    assert!(took > high[place].deadline, "{took:?} of {:?}", high[place].deadline);
    assert!(took <= bound, "{took:?} of {bound:?}");
    assert_eq!(took.0 / 1_000, 2_969, "docs/can.md has it");
}
