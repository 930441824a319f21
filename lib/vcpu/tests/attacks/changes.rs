//! Budgets and periods changed at run time, as often as an attacker likes; and charging in pieces.

use diapason_abi::Nanos;
use diapason_vcpu::SporadicServer;
use diapason_vcpu::sim::Random;

/// Random use of one server that is changed at random. Gives the releases of all units used, as
/// `(release, amount)`, with the smallest period and the largest budget in force.
fn life(random: &mut Random) -> (Vec<(u64, u64)>, u64, u64) {
    let (mut shortest, mut largest) = (random.between(10, 30), random.between(1, 9));
    let limit = random.between(2, 8) as usize;
    let mut server = SporadicServer::new(Nanos(largest), Nanos(shortest), limit, Nanos::ZERO);
    let mut releases = vec![];
    let mut now = Nanos::ZERO;
    for _ in 0..60 {
        match random.below(4) {
            0 => server.wake(now),
            1 => server.block(now),
            2 if random.one_in(2) => {
                let (budget, period) = (random.between(1, 9), random.between(10, 30));
                server.set(Nanos(budget), Nanos(period), now);
                shortest = shortest.min(period);
                largest = largest.max(budget);
            }
            _ if server.is_backlogged() => {
                let part = server.available_by_deadline(now).min(Nanos(random.between(1, 9)));
                let released = server.eligible_at();
                now += part;
                server.charge(part, now);
                releases.push((released.0, part.0));
            }
            _ => {}
        }
        assert!(server.is_consistent(), "{server:?}");
        now += Nanos(random.below(2) * random.below(12));
    }
    (releases, shortest, largest)
}

#[test]
fn no_sequence_of_changes_gains_budget() {
    let mut random = Random::new(11);
    for _ in 0..20_000 {
        let (releases, shortest, largest) = life(&mut random);
        for (start, _) in &releases {
            let window = releases.iter().filter(|(e, _)| start <= e && *e < start + shortest);
            let inside: u64 = window.map(|(_, amount)| amount).sum();
            assert!(inside <= largest, "{inside} > {largest} within {shortest}: {releases:?}");
        }
    }
}

/// Charging in pieces or at once is the same, however far over the budget.
#[test]
fn a_charge_may_come_in_pieces() {
    let mut random = Random::new(12);
    for _ in 0..20_000 {
        let mut server = SporadicServer::new(Nanos(7), Nanos(20), 4, Nanos::ZERO);
        let mut now = Nanos(random.below(10));
        for _ in 0..random.below(6) {
            server.wake(now);
            let part = server.available(now).min(Nanos(random.between(1, 3)));
            now += part;
            server.charge(part, now);
            server.block(now);
            now += Nanos(random.below(25));
        }
        server.wake(now);
        let used = random.between(1, 40);
        let mut pieces = server;
        server.charge(Nanos(used), now + Nanos(used));
        for i in 1..=used {
            pieces.charge(Nanos(1), now + Nanos(i));
        }
        let at = now + Nanos(used);
        assert_eq!(server.chunks().collect::<Vec<_>>(), pieces.chunks().collect::<Vec<_>>());
        assert_eq!(server.available(at), pieces.available(at));
    }
}

/// A plain charge is the charge and the levy, and a plain wake is the wake, wherever they are made.
#[test]
fn what_is_done_plainly_is_the_same() {
    let mut random = Random::new(13);
    let (mut charges, mut wakes) = (0, 0);
    for _ in 0..20_000 {
        let limit = random.between(2, 8) as usize;
        let mut server = SporadicServer::new(Nanos(7), Nanos(20), limit, Nanos(random.below(5)));
        let mut now = Nanos::ZERO;
        for _ in 0..40 {
            let mut other = server;
            if server.is_backlogged() {
                let (used, owed) = (Nanos(random.below(5)), Nanos(random.below(2)));
                now += used;
                other.charge(used, now);
                other.levy(owed);
                let before = server;
                if used + owed > Nanos::ZERO && server.try_charge(used, used + owed, now) {
                    charges += 1;
                    assert_eq!(server, other);
                    assert!(server.available(now) > Nanos::ZERO);
                } else {
                    assert_eq!(server, before);
                }
                server = other;
                if random.one_in(2) {
                    server.block(now);
                }
            } else {
                other.wake(now);
                let budget = server.try_wake(now);
                if budget > Nanos::ZERO {
                    wakes += 1;
                    assert_eq!((server, budget), (other, other.available(now)));
                } else {
                    assert!(!server.is_backlogged());
                }
                server = other;
            }
            assert!(server.is_consistent(), "{server:?}");
            now += Nanos(random.below(12));
        }
    }
    assert!(charges > 10_000 && wakes > 10_000, "{charges} charges, {wakes} wakes");
}
