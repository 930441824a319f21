//! Devices come and go: what runs stays, an endpoint that must be served is, and refusals say what
//! would do.

use crate::common::*;
use diapason_bus::sim::{Random, Set};
use diapason_bus::{
    Async, BusInstance, BusScheduler, Criticality, EndpointId, Guarantee, InvalidDemand, Moves,
    NoSchedule, PeriodicEndpoint, Picos, RefusalReason, plan,
};

const HIGH: Criticality = Criticality::High;
const LOW: Criticality = Criticality::Low;

fn ids(placed: &[diapason_bus::Placed]) -> Vec<u32> {
    placed.iter().map(|placed| placed.id.0).collect()
}

#[test]
fn two_cameras_share_the_bus_if_one_may_run_at_a_longer_period() {
    // Linux refuses the second one, because it asks for every microframe.
    let bus = BusInstance::uncoded();
    let second = PeriodicEndpoint { longest_period: 8, ..camera(2, 1, LOW) };
    let first = camera(1, 2, HIGH);
    let outcome = plan(&bus, &[first, second], &[]).unwrap();
    assert_eq!(ids(&outcome.placed), [1, 2]);
    assert_eq!((outcome.placed[1].period, outcome.placed[1].start), (2, 1));
    assert_eq!(diapason_bus::uniform::linux_first_fit(&bus, &[first, second])[1], None);
    let rigid = plan(&bus, &[first, camera(2, 1, LOW)], &[]).unwrap();
    assert_eq!(rigid.refused[0].would_fit.period, Some(2));
}

#[test]
fn a_critical_device_displaces_cameras_and_they_come_back() {
    let mut scheduler = BusScheduler::new(BusInstance::uncoded()).unwrap();
    scheduler.attach(&[camera(1, 2, LOW), camera(2, 2, LOW)], &[], Moves::Never).unwrap();
    assert_eq!(ids(&scheduler.plan().placed), [1, 2]);
    let change = scheduler.attach(&[camera(3, 4, HIGH)], &[], Moves::Never).unwrap();
    scheduler.check_invariants();
    assert_eq!((ids(&change.started), change.stopped.len()), (vec![3], 1));
    assert_eq!(change.refused.len(), 1);
    assert!(change.moved.is_empty());
    let change = scheduler.detach(&[EndpointId(3)]).unwrap();
    scheduler.check_invariants();
    assert_eq!((change.started.len(), change.moved.len()), (1, 0));
    assert_eq!(ids(&scheduler.plan().placed), [1, 2]);
}

#[test]
fn a_bulk_guarantee_displaces_a_camera() {
    let mut scheduler = BusScheduler::new(timing_alone()).unwrap();
    scheduler.attach(&[camera(1, 1, HIGH), camera(4, 8, LOW)], &[], Moves::Never).unwrap();
    assert_eq!(scheduler.plan().placed.len(), 2);
    let change = scheduler.attach(&[], &four(8192, 1), Moves::Never).unwrap();
    scheduler.check_invariants();
    assert_eq!(change.stopped, [EndpointId(4)]);
    let RefusalReason::Guarantee(broken) = change.refused[0].reason else { panic!("{change:?}") };
    assert_eq!((broken.id, broken.limit), (EndpointId(101), Picos(SLOT)));
    assert_eq!(broken.worst.map(|worst| worst.0 / 100_000), Some(2298));
    assert_eq!(
        change.refused[0].to_string(),
        "endpoint 4 does not fit: a transfer of endpoint 101 could take 229803.2 ns instead of the \
         guaranteed 125000 ns; 5 packet(s) would fit"
    );
}

#[test]
fn running_endpoints_move_only_if_that_is_allowed() {
    // Capacity for two cameras in different microframes; 1 and 2 run at period 4 on the even and
    // odd side, so that one of period 2 only fits if they share a side.
    let mut scheduler = BusScheduler::new(BusInstance::uncoded()).unwrap();
    let places = [camera(1, 4, HIGH), camera(2, 4, HIGH)];
    scheduler.attach(&places, &[], Moves::Never).unwrap();
    let starts: Vec<u32> = scheduler.plan().placed.iter().map(|placed| placed.start).collect();
    let before = scheduler.plan().clone();
    if starts[0] % 2 == starts[1] % 2 {
        // The planner already left one side free.
        scheduler.attach(&[camera(3, 2, HIGH)], &[], Moves::Never).unwrap();
    } else {
        let refused = scheduler.attach(&[camera(3, 2, HIGH)], &[], Moves::Never);
        assert!(matches!(refused, Err(NoSchedule::Refused(_))));
        assert_eq!(scheduler.plan(), &before);
        let change = scheduler.attach(&[camera(3, 2, HIGH)], &[], Moves::Allowed).unwrap();
        assert!(!change.moved.is_empty());
    }
    scheduler.check_invariants();
}

#[test]
fn refusals_say_what_would_fit() {
    let bus = BusInstance::uncoded();
    // 25 packets for each of four in one microframe are too many for any bus.
    let Err(NoSchedule::Refused(alone)) = plan(&bus, &[], &four(25 * 1024, 1)) else { panic!() };
    assert!(matches!(alone.reason, RefusalReason::Alone(_)));
    assert_eq!(alone.would_fit.period, Some(2));
    let bytes = alone.would_fit.amount.unwrap();
    assert!(plan(&bus, &[], &four(bytes, 1)).is_ok());
    let one_more = [bytes + 1, bytes, bytes, bytes];
    let asyncs: Vec<Async> = one_more
        .iter()
        .zip(four(bytes, 1))
        .map(|(bytes, a)| Async { guarantee: Some(Guarantee { bytes: *bytes, period: 1 }), ..a })
        .collect();
    assert!(plan(&bus, &[], &asyncs).is_err());
    // A camera that lacks 1,074 ns: 32 of its 33 packets would have fitted.
    let Err(NoSchedule::Refused(refusal)) =
        plan(&bus, &[camera(1, 1, HIGH), camera(2, 2, HIGH)], &[])
    else {
        panic!()
    };
    assert_eq!(
        refusal.to_string(),
        "endpoint 2 does not fit: slot 0 lacks 1072.8 ns, and no other start is better; 32 \
         packet(s) would fit"
    );
}

#[test]
fn nonsense_is_named() {
    let bus = BusInstance::uncoded();
    let ok = camera(1, 1, HIGH);
    let is = |periodic: &[PeriodicEndpoint], asyncs: &[Async], nonsense: InvalidDemand| {
        assert_eq!(plan(&bus, periodic, asyncs), Err(NoSchedule::Nonsense(nonsense)));
        assert!(nonsense.to_string().len() > 20);
    };
    let id = EndpointId(1);
    is(&[PeriodicEndpoint { period: 3, ..ok }], &[], InvalidDemand::Period(id));
    is(&[PeriodicEndpoint { period: 0, ..ok }], &[], InvalidDemand::Period(id));
    is(&[PeriodicEndpoint { period: 4, longest_period: 2, ..ok }], &[], InvalidDemand::Period(id));
    is(&[PeriodicEndpoint { packet: 1025, ..ok }], &[], InvalidDemand::Packet(id, 1024));
    is(&[PeriodicEndpoint { burst: 16, ..ok }], &[], InvalidDemand::Packets(id, 48));
    is(&[ok, ok], &[], InvalidDemand::Twice(id));
    is(&[ok], &[bulk(1, None)], InvalidDemand::Twice(id));
    is(&[], &[Async { packet: 0, ..bulk(1, None) }], InvalidDemand::Packet(id, 1024));
    is(&[], &[Async { burst: 16, ..bulk(1, None) }], InvalidDemand::Packets(id, 16));
    let nothing = Some(Guarantee { bytes: 0, period: 1 });
    is(&[], &[bulk(1, nothing)], InvalidDemand::Guarantee(id));
    let mut scheduler = BusScheduler::new(bus).unwrap();
    assert_eq!(scheduler.detach(&[id]), Err(InvalidDemand::Unknown(id)));
    let none = BusInstance { periodic_percent: 0, ..bus };
    assert_eq!(
        BusScheduler::new(none).unwrap_err(),
        NoSchedule::Nonsense(InvalidDemand::Percent(0))
    );
}

#[test]
fn whatever_comes_and_goes_everything_promised_holds() {
    let (mut refused, mut stopped, mut moved, mut attached) = (0, 0, 0, 0);
    for index in 0..120 {
        let random = &mut Random::stream(31, index);
        let first = Set::draw(random);
        let mut scheduler = BusScheduler::new(first.bus).unwrap();
        for round in 0..12u32 {
            let mut set = Set::draw(random);
            while set.bus.speed != first.bus.speed {
                set = Set::draw(random);
            }
            let moves = if random.one_in(2) { Moves::Allowed } else { Moves::Never };
            set.periodic.truncate(2);
            set.asyncs.truncate(1);
            set.periodic.iter_mut().for_each(|p| p.id.0 += round * 1_000);
            set.asyncs.iter_mut().for_each(|a| a.id.0 += round * 1_000);
            let before = scheduler.clone();
            match scheduler.attach(&set.periodic, &set.asyncs, moves) {
                Ok(change) => {
                    attached += 1;
                    stopped += change.stopped.len();
                    moved += change.moved.len();
                    kept_its_word(&before, &change, moves);
                }
                Err(NoSchedule::Refused(_)) => {
                    refused += 1;
                    assert_eq!(before.plan(), scheduler.plan());
                }
                Err(NoSchedule::Nonsense(nonsense)) => panic!("{nonsense}"),
            }
            scheduler.check_invariants();
            if random.one_in(3) {
                let all: Vec<EndpointId> = scheduler.periodic().iter().map(|p| p.id).collect();
                let gone: Vec<EndpointId> = all.into_iter().filter(|_| random.one_in(3)).collect();
                let change = scheduler.detach(&gone).unwrap();
                assert!(change.moved.is_empty() && change.stopped.is_empty());
                scheduler.check_invariants();
            }
        }
    }
    assert!(refused > 50 && stopped > 20 && moved > 20 && attached > 300);
}

/// Without permission to move, critical endpoints stay where they were.
fn kept_its_word(before: &BusScheduler, change: &diapason_bus::ScheduleChange, moves: Moves) {
    if moves == Moves::Allowed {
        return;
    }
    for moved in &change.moved {
        let old = before.periodic().iter().find(|p| p.id == moved.id).unwrap();
        assert_eq!(old.criticality, LOW);
    }
}
