//! Nodes that send in the order of requests: the bounds against the bus.

use crate::support::Random;
use diapason_abi::Nanos;
use diapason_can::bus::{Bus, EventKind, NodeSetup, Ticket, WireFault};
use diapason_can::in_order::{BusErrors, Sends, responses_in_order};
use diapason_can::response::{AnalysedMessage, Errors, responses};
use diapason_can::{BitRate, CanFrame, StandardId};
use std::collections::BTreeMap;

const NODES: u64 = 4;

type Waiting = BTreeMap<Ticket, (usize, u64)>;

struct Traffic {
    messages: Vec<AnalysedMessage>,
    nodes: Vec<usize>,
    in_order: Vec<bool>,
    errors: BusErrors,
}

fn traffic(random: &mut Random, faulty: bool) -> Traffic {
    let count = random.between(3, 9);
    let load = random.between(30, 95);
    let mut ids: Vec<u16> = (0..count).map(|n| (n * 40 + random.below(40)) as u16).collect();
    for at in (1..ids.len()).rev() {
        ids.swap(at, random.below(at as u64 + 1) as usize);
    }
    let messages = ids.into_iter().map(|id| {
        let share = random.between(40, 180);
        let period = 135_000 * count * share / load;
        let message = AnalysedMessage::new(StandardId::new(id).unwrap(), 8, Nanos(period));
        let jitter = if random.one_in(3) { random.below(period / 4) } else { 0 };
        AnalysedMessage { jitter: Nanos(jitter), ..message }
    });
    let messages: Vec<AnalysedMessage> = messages.collect();
    let nodes = messages.iter().map(|_| random.below(NODES) as usize).collect();
    let in_order = (0..NODES).map(|_| random.one_in(2)).collect();
    let longest = messages.iter().map(|message| message.period.0).max().unwrap();
    let interval = Nanos(longest * random.between(1, 4));
    let errors = if faulty { Errors { burst: 1, interval } } else { Errors::NONE };
    let errors = BusErrors { errors, again: Nanos::ZERO };
    Traffic { messages, nodes, in_order, errors }
}

/// Returns the longest response of each message seen on the bus.
fn seen(traffic: &Traffic, rate: BitRate, random: &mut Random) -> Vec<Nanos> {
    let mut bus = Bus::new(rate);
    let nodes: Vec<_> = traffic
        .in_order
        .iter()
        .map(|in_order| bus.add_node(NodeSetup { in_order: *in_order, ..NodeSetup::default() }))
        .collect();
    let critical = 20_000_000;
    let together = random.one_in(2);
    let mut calendar = Vec::new();
    for (index, message) in traffic.messages.iter().enumerate() {
        let (period, jitter) = (message.period.0, message.jitter.0);
        let mut came = critical - jitter;
        if !together {
            came -= random.below(period);
        }
        for _ in 0..12 {
            let late = if random.one_in(2) { jitter } else { random.below(jitter + 1) };
            calendar.push((came + late, random.below(1_000), came, index));
            came += period;
        }
    }
    calendar.sort_unstable();
    let mut waiting = Waiting::new();
    let mut longest = vec![Nanos::ZERO; traffic.messages.len()];
    let collect = |bus: &mut Bus, waiting: &mut Waiting, longest: &mut Vec<Nanos>| {
        while let Some(event) = bus.poll() {
            let EventKind::Sent { ticket: Some(ticket), .. } = event.kind else { continue };
            let Some((index, came)) = waiting.remove(&ticket) else { continue };
            longest[index] = longest[index].max(event.time - Nanos(came));
        }
    };
    let mut destroys = critical;
    for (queued, _, came, index) in calendar {
        let frame = CanFrame::data(traffic.messages[index].id, &[0x3c; 8]).unwrap();
        let node = nodes[traffic.nodes[index]];
        bus.advance(Nanos(queued));
        if traffic.errors.errors != Errors::NONE && queued >= destroys {
            let fault = WireFault::Flip {
                bit: random.below(130) as u32,
                seen_by: random.between(1, (1 << NODES) - 1),
            };
            bus.arm(Nanos(queued), fault);
            destroys = queued + 4 * traffic.errors.errors.interval.0;
        }
        collect(&mut bus, &mut waiting, &mut longest);
        let ticket = bus.send(Nanos(queued), node, frame).unwrap();
        waiting.insert(ticket, (index, came));
    }
    while let Some(time) = bus.next_event() {
        bus.advance(time);
        collect(&mut bus, &mut waiting, &mut longest);
    }
    longest
}

fn queues(traffic: &Traffic) -> Vec<Option<usize>> {
    let nodes = traffic.nodes.iter();
    nodes.map(|node| traffic.in_order[*node].then_some(*node)).collect()
}

fn sends(queues: &[Option<usize>]) -> Vec<Sends> {
    queues.iter().map(|queue| queue.map_or(Sends::Urgent, Sends::InOrder)).collect()
}

#[test]
fn no_message_takes_longer_than_its_bound() {
    let rate = BitRate::new(1_000_000).unwrap();
    let (mut bounded, mut beyond) = (0, 0);
    for seed in 0..1_500 {
        let mut random = Random::new(seed);
        let traffic = traffic(&mut random, seed % 2 == 1);
        let (queues, errors) = (sends(&queues(&traffic)), traffic.errors);
        let bounds = responses_in_order(rate, &traffic.messages, &queues, 0, errors);
        let Ok(bounds) = bounds else { continue };
        bounded += 1;
        let fixed = responses(rate, &traffic.messages, traffic.errors.errors, 0);
        let seen = seen(&traffic, rate, &mut random);
        for (index, (seen, bound)) in seen.iter().zip(&bounds).enumerate() {
            assert!(seen <= bound, "seed {seed}, message {index}: {seen} of {bound}");
            beyond += usize::from(fixed.as_ref().is_ok_and(|fixed| fixed[index] < *seen));
        }
    }
    // Bounds of nodes that send the most urgent first would not do for these nodes.
    assert!(bounded > 500 && beyond > 20, "{bounded} sets, {beyond} messages");
}

#[test]
fn without_such_nodes_the_bounds_are_the_usual_ones() {
    let rate = BitRate::new(500_000).unwrap();
    for seed in 0..500 {
        let traffic = traffic(&mut Random::new(seed), seed % 2 == 1);
        let none = vec![Sends::Urgent; traffic.messages.len()];
        let usual = responses(rate, &traffic.messages, traffic.errors.errors, 80);
        assert_eq!(
            responses_in_order(rate, &traffic.messages, &none, 80, traffic.errors),
            usual,
            "seed {seed}"
        );
    }
}

#[test]
fn an_urgent_message_waits_for_what_its_own_node_was_given_first() {
    let rate = BitRate::new(1_000_000).unwrap();
    let message = |id, period| AnalysedMessage::new(StandardId::new(id).unwrap(), 8, period);
    let ms = Nanos::from_millis;
    let messages = [message(1, ms(10)), message(0x300, ms(10)), message(0x200, ms(10))];
    // Its mate of 133 bits, the stranger above the mate, and itself without the space.
    let bounds = responses_in_order(
        rate,
        &messages,
        &[Sends::InOrder(0), Sends::InOrder(0), Sends::Urgent],
        0,
        BusErrors::NONE,
    );
    assert_eq!(bounds.unwrap()[0], Nanos::from_micros(133 + 133 + 130));
    let urgent = [Sends::Urgent; 3];
    let bounds = responses_in_order(rate, &messages, &urgent, 0, BusErrors::NONE).unwrap();
    assert_eq!(bounds[0], Nanos::from_micros(133 + 130));
}
