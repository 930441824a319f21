//! Makes a drawn system that breaks a promise as small as it can be: parts are taken away, and what
//! is left made ordinary, as long as a promise of the same kind is broken.

use super::drawn::{Drawn, DrawnBus, DrawnSender, Gadget, Interface, KBITS, Perch, Queues};

/// Most systems that are tried for one violation.
const TRIALS: usize = 120;

/// Returns the smallest that was found for which `breaks` is true, as it is for `drawn`.
pub fn shrink(drawn: &Drawn, breaks: &mut dyn FnMut(&Drawn) -> bool) -> Drawn {
    let (mut smallest, mut trials) = (drawn.clone(), 0);
    loop {
        let before = smallest.clone();
        for smaller in candidates(&before) {
            // An earlier candidate of this round may have made this one meaningless.
            let Some(next) = smaller(&smallest).filter(|next| *next != smallest) else { continue };
            if trials == TRIALS {
                return smallest;
            }
            trials += 1;
            if breaks(&next) {
                smallest = next;
            }
        }
        if smallest == before {
            return smallest;
        }
    }
}

type Smaller = Box<dyn Fn(&Drawn) -> Option<Drawn>>;

/// Returns every way to make it smaller, the largest steps first.
fn candidates(drawn: &Drawn) -> Vec<Smaller> {
    let mut all: Vec<Smaller> = Vec::new();
    let mut simple = |change: fn(&mut Drawn)| {
        all.push(Box::new(move |from: &Drawn| {
            let mut next = from.clone();
            change(&mut next);
            Some(next)
        }));
    };
    simple(|next| next.tasks.clear());
    simple(|next| next.rude.clear());
    simple(|next| next.servers.clear());
    simple(|next| next.servers.truncate(next.servers.len().saturating_sub(1)));
    simple(|next| next.can = None);
    simple(|next| next.bus = None);
    simple(|next| next.tasks.truncate(next.tasks.len() / 2));
    simple(|next| drop(next.tasks.drain(..next.tasks.len() / 2)));
    simple(|next| next.drift_ppm = 0);
    simple(|next| next.faults = false);
    simple(|next| next.queues = Queues::Periods);
    simple(|next| next.closed = false);
    simple(|next| {
        next.board = None;
        next.places().into_iter().for_each(|core| *core = 0);
    });
    simple(|next| next.board = None);
    simple(|next| next.board.iter_mut().for_each(|board| board.storm = None));
    simple(|next| next.places().into_iter().for_each(|core| *core = (*core).min(1)));
    simple(|next| next.clock_mhz = 1_000);
    for number in (0..drawn.tasks.len()).rev() {
        all.push(Box::new(move |from| {
            let mut next = from.clone();
            if number >= next.tasks.len() {
                return None;
            }
            next.tasks.remove(number);
            Some(next)
        }));
    }
    for number in (0..drawn.rude.len()).rev() {
        all.push(Box::new(move |from| {
            let mut next = from.clone();
            if number >= next.rude.len() {
                return None;
            }
            next.rude.remove(number);
            Some(next)
        }));
    }
    if let Some(can) = &drawn.can {
        of_can(can, &mut all);
    }
    if let Some(bus) = &drawn.bus {
        of_bus(bus, &mut all);
    }
    ordinary(drawn, &mut all);
    all
}

/// The same drawn system with its interface changed.
fn with_can(change: impl Fn(&mut Interface) + 'static) -> Smaller {
    Box::new(move |from| {
        let mut next = from.clone();
        change(next.can.as_mut()?);
        Some(next)
    })
}

fn of_can(can: &Interface, all: &mut Vec<Smaller>) {
    all.push(with_can(|can| can.classes.clear()));
    all.push(with_can(|can| can.outputs.clear()));
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.chain = None)));
    all.push(with_can(|can| can.tuned = false));
    all.push(with_can(|can| can.behind_hub = false));
    all.push(with_can(|can| can.kbits = KBITS));
    all.push(with_can(|can| can.few = false));
    all.push(with_can(|can| can.bursts = false));
    all.push(with_can(|can| can.second = None));
    for number in (0..can.pipes.len()).rev() {
        all.push(with_can(move |can| {
            if number < can.pipes.len() {
                can.pipes.remove(number);
            }
        }));
    }
    for number in (0..can.outputs.len()).rev() {
        all.push(with_can(move |can| {
            if number < can.outputs.len() {
                can.outputs.remove(number);
            }
        }));
    }
    for number in (0..can.classes.len()).rev() {
        all.push(with_can(move |can| {
            if number < can.classes.len() {
                can.classes.remove(number);
            }
            // The second device of a kind has the works of the first one.
            let has = |wanted: fn(&Gadget) -> bool| can.classes.iter().any(wanted);
            let cameras = has(|class| matches!(class, Gadget::Pictures(..)));
            let sensors = has(|class| matches!(class, Gadget::Samples(_)));
            let disks = has(|class| matches!(class, Gadget::Blocks(..)));
            can.classes.retain(|class| match class {
                Gadget::SecondPictures(..) => cameras,
                Gadget::SecondSamples(_) => sensors,
                Gadget::SecondBlocks(..) => disks,
                _ => true,
            });
        }));
    }
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.shares = false)));
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.jitter = 0)));
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.takes = pipe.work)));
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.rate = 100)));
    all.push(with_can(|can| can.pipes.iter_mut().for_each(|pipe| pipe.replenishments = 8)));
    all.push(with_can(|can| can.works = 20));
}

/// The same drawn system with its bus changed.
fn with_bus(change: impl Fn(&mut DrawnBus) + 'static) -> Smaller {
    Box::new(move |from| {
        let mut next = from.clone();
        change(next.bus.as_mut()?);
        Some(next)
    })
}

fn of_bus(bus: &DrawnBus, all: &mut Vec<Smaller>) {
    for number in (0..bus.senders.len()).rev() {
        all.push(with_bus(move |bus| {
            if number < bus.senders.len() && bus.senders.len() > 1 {
                bus.senders.remove(number);
            }
        }));
        for place in (0..bus.senders[number].messages.len()).rev() {
            all.push(with_bus(move |bus| {
                let of = bus.senders.get_mut(number).map(|sender| &mut sender.messages);
                if let Some(of) = of.filter(|of| of.len() > 1 && place < of.len()) {
                    of.remove(place);
                }
            }));
        }
    }
    for number in (0..bus.readers.len()).rev() {
        all.push(with_bus(move |bus| {
            if number < bus.readers.len() {
                bus.readers.remove(number);
            }
        }));
        all.push(with_bus(move |bus| {
            let of = bus.readers.get_mut(number).map(|reader| &mut reader.messages);
            if let Some(of) = of.filter(|of| of.len() > 1) {
                of.pop();
            }
        }));
    }
    let honest = |sender: &mut DrawnSender| (sender.apart, sender.often) = (0, 0);
    all.push(with_bus(move |bus| bus.senders.iter_mut().for_each(honest)));
    all.push(with_bus(|bus| bus.own = 0));
    all.push(with_bus(|bus| bus.on_time = false));
    all.push(with_bus(|bus| bus.errors = 0));
    all.push(with_bus(|bus| bus.replenishments = 8));
    all.push(with_bus(|bus| bus.kbits = KBITS));
}

/// Numbers that are as everybody writes them.
fn ordinary(drawn: &Drawn, all: &mut Vec<Smaller>) {
    for number in 0..drawn.tasks.len() {
        let with = |change: fn(&mut super::drawn::DrawnTask)| -> Smaller {
            Box::new(move |from| {
                let mut next = from.clone();
                change(next.tasks.get_mut(number)?);
                Some(next)
            })
        };
        all.push(with(|task| task.section = 0));
        all.push(with(|task| task.asks = Default::default()));
        all.push(with(|task| task.asks = task.asks.map(|times| times.min(1))));
        all.push(with(|task| (task.patience, task.background) = (0, false)));
        all.push(with(|task| task.phase = 0));
        all.push(with(|task| task.often = 1));
        all.push(with(|task| task.replenishments = 8));
    }
    for number in 0..drawn.servers.len() {
        all.push(Box::new(move |from| {
            let mut next = from.clone();
            let server = next.servers.get_mut(number)?;
            (server.section, server.onward) = (0, 0);
            Some(next)
        }));
    }
    for number in 0..drawn.rude.len() {
        all.push(Box::new(move |from| {
            let mut next = from.clone();
            let rude = next.rude.get_mut(number)?;
            if let Perch::Own(_, list) = &mut rude.seat {
                *list = 8;
            }
            Some(next)
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::raw;
    use super::*;

    #[test]
    fn only_what_breaks_it_is_left() {
        let with = |drawn: &Drawn| drawn.rude.iter().any(|rude| rude.arguments[0] == 1);
        let drawn = (0..).map(|number| raw(9, number));
        for drawn in drawn.filter(|drawn| with(drawn) && drawn.size() > 8).take(5) {
            let small = shrink(&drawn, &mut |next| with(next));
            assert_eq!(small.size(), 1, "{small:?}");
            assert_eq!((small.queues, small.clock_mhz), (Queues::Periods, 1_000));
        }
    }

    #[test]
    fn it_stops_after_so_many_trials() {
        let drawn = (0..).map(|number| raw(9, number)).find(|it| it.size() > 8).unwrap();
        let mut trials = 0;
        let same = shrink(&drawn, &mut |_| {
            trials += 1;
            false
        });
        assert_eq!(same, drawn);
        assert!(trials <= TRIALS);
    }
}
