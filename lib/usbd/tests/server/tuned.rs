//! Tuned pipes: what programs ask for, and what the processor refuses, at every step.

use crate::ground::{self, Ground, Letters, post};
use diapason_abi::pipe::{COSTS, DriverCosts, ENVELOPES, Envelope};
use diapason_abi::settings::Settings;
use diapason_abi::{Errno, MESSAGE_BYTES, Nanos};
use diapason_contract::can::CHANNELS;
use diapason_contract::tuned::names;
use diapason_pipe::tuned::{
    PipeAnswer, PipeCommand, PipeRequest, Qos, RequestOutcome, Route, WhyRefused,
};
use diapason_usbd::platform::{MessagePort, Platform, Reserve, Wakes};
use diapason_usbd::tuned::Office;
use diapason_usbd::{PlaceOrder, Presence, ServerSettings};
use diapason_xhc::Config;

const PLACES: usize = 3;
const ENVELOPE: Envelope = Envelope {
    channels: 0x1f,
    to: 0,
    rate: 5_000,
    burst: 16,
    budget: Nanos::from_millis(5),
    period: Nanos::from_micros(500),
};
const DRIVER: DriverCosts = DriverCosts {
    transfer: Nanos::from_micros(125),
    transfer_least: Nanos::from_micros(10),
    gap: Nanos::from_micros(990),
    top_half: Nanos::from_micros(20),
    bottom_half: Nanos::from_micros(50),
    share: 100_000,
    period: Nanos::from_millis(2),
    wake: Nanos::from_micros(2),
};

/// A core that refuses one call, counted from 1.
#[derive(Default)]
struct Core {
    has: [(Nanos, Nanos); PLACES],
    calls: usize,
    refused: Option<usize>,
}

impl Reserve for Core {
    fn set(&mut self, place: usize, budget: Nanos, period: Nanos) -> Result<(), Errno> {
        self.calls += 1;
        if self.refused == Some(self.calls) {
            return Err(Errno::Overload);
        }
        self.has[place] = (budget, period);
        Ok(())
    }

    fn now(&mut self) -> Nanos {
        Nanos::ZERO
    }

    fn rest(&mut self, _: Nanos) {
        unreachable!("no call is too early");
    }
}

/// The channels that places listen to.
#[derive(Default, Clone, PartialEq, Eq, Debug)]
struct Channels([Option<u8>; PLACES]);

impl Channels {
    fn order(&mut self, order: &PlaceOrder) {
        match *order {
            PlaceOrder::Listen { place, channel, .. } => self.0[place] = Some(channel),
            PlaceOrder::Leave { place } => self.0[place] = None,
            PlaceOrder::Write { .. } => unreachable!("no place may write"),
        }
    }
}

struct Rig {
    office: Office<Ground>,
    presence: Presence,
    core: Core,
    channels: Channels,
    answers: [Letters; PLACES],
}

impl Rig {
    fn new() -> Rig {
        let ground = ground::set_up(Config::default());
        let mut settings = Settings::NONE;
        settings.put(ENVELOPES, &[ENVELOPE.words(); PLACES].concat()).unwrap();
        settings.put(COSTS, &DRIVER.words()).unwrap();
        let pipes = ServerSettings::read(&settings).pipes;
        let mut core = Core::default();
        let presence = Presence::default();
        presence.set(true);
        let office = Office::new(&ground, &pipes, presence.clone(), &mut core);
        let office = office.unwrap().expect("costs are told");
        let answers = |place| ground.mailbox(names(place).unwrap().answers, Wakes::Nobody).unwrap();
        let answers = std::array::from_fn(answers);
        Rig { office, presence, core, channels: Channels::default(), answers }
    }

    /// Returns a rig whose first pipes are open.
    fn with(pipes: usize) -> Rig {
        let mut rig = Rig::new();
        for place in 0..pipes {
            assert!(matches!(rig.asks(place, open(place)), RequestOutcome::Granted(_)), "{place}");
        }
        rig
    }

    fn post(place: usize, token: u32, wanted: PipeCommand) {
        post(names(place).unwrap().questions, &PipeRequest { token, wanted }.bytes());
    }

    fn attend(&mut self) -> bool {
        self.office.attend(&mut |order| self.channels.order(order), &mut self.core)
    }

    /// Returns the oldest answer that nobody has read.
    fn answer(&mut self, place: usize) -> Option<PipeAnswer> {
        let mut bytes = [0; MESSAGE_BYTES];
        let length = self.answers[place].receive(&mut bytes)?;
        Some(PipeAnswer::parse(&bytes[..length]).expect("an answer"))
    }

    fn asks(&mut self, place: usize, wanted: PipeCommand) -> RequestOutcome {
        Rig::post(place, 7, wanted);
        assert!(self.attend());
        self.answer(place).expect("it is answered").outcome
    }

    /// Lets the core refuse a call from now on: the next is number 1.
    fn refuse(&mut self, call: Option<usize>) {
        (self.core.calls, self.core.refused) = (0, call);
    }
}

/// Returns the pipe of a place: the later the place, the more urgent.
fn open(place: usize) -> PipeCommand {
    let latency = Nanos::from_millis(60 - 15 * place as u64);
    let (tput, buffer) = (1_000 * 16 * 8 / 20, 64 * 16);
    PipeCommand::Open(
        Route::From(place as u8),
        Qos { latency, tput, buffer, execution: Nanos::from_micros(300), burst: 1 },
    )
}

fn is_of_processor(outcome: &RequestOutcome) -> bool {
    let RequestOutcome::Refused(refused) = outcome else { return false };
    matches!(refused.reason, WhyRefused::Processor { .. })
}

/// A pipe that is opened, with the others that have to change for it: all of it happens or nothing.
#[test]
fn a_reservation_refused_at_any_step_opens_nothing() {
    for already in 0..PLACES {
        let mut undisturbed = Rig::with(already);
        undisturbed.refuse(None);
        let granted = undisturbed.asks(already, open(already));
        let (steps, after) = (undisturbed.core.calls, undisturbed.core.has);
        assert!(steps > 0, "a pipe costs a reservation");
        for step in 1..=steps {
            let mut rig = Rig::with(already);
            let (before, channels) = (rig.core.has, rig.channels.clone());
            // A refused pipe takes none of the channels that there are.
            for _ in 0..=CHANNELS {
                rig.refuse(Some(step));
                let refused = rig.asks(already, open(already));
                assert!(is_of_processor(&refused), "{already}, {step}: {refused:?}");
            }
            assert_eq!(rig.core.has, before, "{already}, {step}");
            assert_eq!(rig.channels, channels, "{already}, {step}");
            rig.refuse(None);
            assert_eq!(rig.asks(already, open(already)), granted, "{already}, {step}");
            assert_eq!((rig.core.has, rig.core.calls), (after, steps), "{already}, {step}");
        }
    }
}

/// Without an interface nothing is opened or reserved; pipes that are open can change and close.
#[test]
fn no_pipe_is_opened_without_an_interface() {
    let mut rig = Rig::with(1);
    rig.presence.set(false);
    rig.refuse(None);
    let RequestOutcome::Refused(refused) = rig.asks(1, open(1)) else { panic!("it is opened") };
    assert_eq!((refused.reason, rig.core.calls), (WhyRefused::NoDevice, 0));
    assert_eq!(rig.channels.0, [Some(0), None, None]);
    let PipeCommand::Open(_, qos) = open(0) else { unreachable!() };
    assert!(matches!(rig.asks(0, PipeCommand::Change(qos)), RequestOutcome::Granted(_)));
    assert_eq!(rig.asks(0, PipeCommand::Close), RequestOutcome::Closed);
    rig.presence.set(true);
    assert!(matches!(rig.asks(1, open(1)), RequestOutcome::Granted(_)));
}

#[test]
fn no_pipe_is_opened_at_a_channel_that_is_not_there() {
    let mut rig = Rig::with(0);
    rig.refuse(None);
    let PipeCommand::Open(_, qos) = open(0) else { unreachable!() };
    let wanted = PipeCommand::Open(Route::From(5), qos);
    let RequestOutcome::Refused(refused) = rig.asks(0, wanted) else { panic!("it is opened") };
    let reason = WhyRefused::NoSuchChannel { channel: 5, channels: 5 };
    assert_eq!(refused.reason, reason);
    assert_eq!((rig.core.calls, rig.channels), (0, Channels::default()));
}

/// Other terms that the core refuses leave a pipe on those that it has.
#[test]
fn a_change_refused_at_any_step_changes_nothing() {
    let PipeCommand::Open(_, qos) = open(0) else { unreachable!() };
    let faster =
        PipeCommand::Change(Qos { latency: Nanos::from_millis(20), tput: 2 * qos.tput, ..qos });
    let mut undisturbed = Rig::with(PLACES);
    undisturbed.refuse(None);
    let granted = undisturbed.asks(0, faster);
    assert!(matches!(granted, RequestOutcome::Granted(_)), "{granted:?}");
    let (steps, after) = (undisturbed.core.calls, undisturbed.core.has);
    for step in 1..=steps {
        let mut rig = Rig::with(PLACES);
        let before = rig.core.has;
        rig.refuse(Some(step));
        assert!(is_of_processor(&rig.asks(0, faster)), "{step}");
        assert_eq!(rig.core.has, before, "{step}");
        rig.refuse(None);
        assert_eq!((rig.asks(0, faster), rig.core.has), (granted, after), "{step}");
    }
}

/// A pipe is closed even if the core takes nothing back; it is open on the same terms later.
#[test]
fn a_refusal_keeps_no_pipe_open() {
    for step in 1..=PLACES {
        let mut rig = Rig::with(PLACES);
        rig.refuse(Some(step));
        assert_eq!(rig.asks(1, PipeCommand::Close), RequestOutcome::Closed, "{step}");
        assert_eq!(rig.channels.0, [Some(0), None, Some(2)], "{step}");
        rig.refuse(None);
        assert!(matches!(rig.asks(1, open(1)), RequestOutcome::Granted(_)), "{step}");
        assert_eq!(rig.core.has, Rig::with(PLACES).core.has, "{step}");
    }
}

/// The next program in a place begins with a close, and has what the first one would have had,
/// wherever that one was when it died.
#[test]
fn a_program_that_dies_at_any_step_harms_no_successor() {
    let PipeCommand::Open(_, qos) = open(1) else { unreachable!() };
    let life = [
        open(1),
        PipeCommand::Change(Qos { latency: Nanos::from_millis(30), ..qos }),
        PipeCommand::Close,
        open(1),
    ];
    let fresh = Rig::with(PLACES);
    // A step is a question, its answer by the office, or the reading of that.
    for steps in 0..=3 * life.len() {
        let mut rig = Rig::with(1);
        for step in 0..steps {
            match (step / 3, step % 3) {
                (question, 0) => Rig::post(1, question as u32, life[question]),
                (_, 1) => assert!(rig.attend()),
                _ => assert!(rig.answer(1).is_some()),
            }
        }
        Rig::post(1, 100, PipeCommand::Close);
        while rig.attend() {}
        let last = std::iter::from_fn(|| rig.answer(1)).last();
        assert_eq!(
            last,
            Some(PipeAnswer { token: 100, outcome: RequestOutcome::Closed }),
            "{steps}"
        );
        assert_eq!(rig.channels.0, [Some(0), None, None], "{steps}");
        for place in 1..PLACES {
            assert!(matches!(rig.asks(place, open(place)), RequestOutcome::Granted(_)), "{steps}");
        }
        assert_eq!((&rig.core.has, &rig.channels), (&fresh.core.has, &fresh.channels), "{steps}");
    }
}
