//! The promises under attack: quick campaigns always, the long one on demand.

use diapason_bus::sim::{CampaignReport, attack, attack_uniform, compare};

fn holds(report: &CampaignReport) {
    println!("{report:?}");
    assert!(report.broken.is_empty(), "planned and did not hold: {:?}", report.broken);
    assert!(report.beaten.is_empty(), "a uniform schedule keeps more: {:?}", report.beaten);
}

#[test]
fn no_schedule_breaks_and_uniform_ones_accept_no_more() {
    let report = attack(1, 0..2_000, 3);
    holds(&report);
    assert!(report.accepted > 500 && report.accepted < report.sets, "{report:?}");
    assert!(report.transfers > 10_000 && report.ratios[9] > 100, "{report:?}");
    assert!(report.beyond_slot_starts > 100, "the attack finds the worst starts: {report:?}");
    assert!(report.uniform.1 > 0, "uniform schedules break guarantees");
}

#[test]
fn the_simulated_bus_catches_uniform_schedules() {
    let (unsound, caught) = attack_uniform(1, 0..2_000, 20);
    println!("{unsound} break a guarantee, {caught} of them were seen to be late");
    assert!(unsound > 10 && caught * 3 > unsound, "{unsound} {caught}");
}

#[test]
fn acceptance_is_within_two_percent_of_everything_possible() {
    let report = compare(2, 0..2_000);
    holds(&report);
    assert!(report.exhaustive > 300 && report.exhaustive < report.sets, "{report:?}");
    assert!(report.accepted * 100 >= report.exhaustive * 98, "{report:?}");
}

#[test]
#[ignore = "a million sets take minutes, in release: run before a release of the scheduler"]
fn no_schedule_breaks_in_a_million_sets() {
    // In parts, so that one sees how far it is.
    for part in 0..20 {
        println!("{part} of 20");
        holds(&attack(3, part * 50_000..(part + 1) * 50_000, 2));
    }
}

#[test]
#[ignore = "fifty thousand exhaustive searches, in release: for the figures in docs/bus.md"]
fn acceptance_in_fifty_thousand_sets() {
    let report = compare(4, 0..50_000);
    holds(&report);
    assert!(report.accepted * 1000 >= report.exhaustive * 980, "{report:?}");
}
