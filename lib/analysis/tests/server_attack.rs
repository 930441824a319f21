//! The promises under attack: a quick campaign of each kind, and the long one on demand.

use diapason_abi::Nanos;
use diapason_analysis::attack::{CAMPAIGNS, Campaign, attack, attack_as_if, papers};
use diapason_analysis::server::{SharedCore, Woken};

/// Every campaign, so many systems each, so many worlds per system.
fn all(seed: u64, systems: u64, runs: u32) {
    for campaign in &CAMPAIGNS {
        let report = attack(campaign, seed, systems, runs);
        println!("{}: {report}", campaign.name);
        assert_eq!(report.broken, 0, "{}: {:?}", campaign.name, report.violations);
        assert!(report.response.count() > 0 && report.own.count() > 0 && report.any.count() > 0);
    }
}

#[test]
fn no_promise_breaks() {
    all(1, 60, 4);
}

#[test]
#[ignore = "20,000 systems that [USB 2023, eq. 1] accepts: for the figure in docs/analysis.md"]
fn how_often_the_papers_rules_break_their_own_test() {
    let report = papers(8, 20_000, 8);
    println!("{report:?}");
    assert_eq!((report.late_with_ours, report.closed_only), (0, 0), "{report:?}");
}

#[test]
#[ignore = "a million systems take minutes even in release: run before a release of the analysis"]
fn no_promise_breaks_in_a_million_systems() {
    all(2, 63_000, 2);
}

#[test]
fn the_attack_reaches_the_bounds() {
    let report = attack(&CAMPAIGNS[0], 3, 300, 4);
    for ratios in [&report.response, &report.own, &report.any, &report.io] {
        assert_eq!(ratios.at(1000), Some(1000), "{report}");
    }
    assert!(report.single.1 > 0, "budgets do come later than one period: {report}");
}

#[test]
fn the_same_seed_gives_the_same_report() {
    assert_eq!(attack(&CAMPAIGNS[7], 5, 20, 2), attack(&CAMPAIGNS[7], 5, 20, 2));
    assert_ne!(attack(&CAMPAIGNS[7], 5, 20, 2), attack(&CAMPAIGNS[7], 6, 20, 2));
}

#[test]
fn the_papers_rules_break_their_own_test() {
    let report = papers(7, 400, 4);
    println!("{report:?}");
    assert!(report.late_with_theirs > 0 && report.late_with_ours == 0, "{report:?}");
    assert!(report.equation_one < report.wide && report.wide < report.exact, "{report:?}");
    assert_eq!(report.closed_only, 0);
}

fn named(name: &str) -> &'static Campaign {
    CAMPAIGNS.iter().find(|campaign| campaign.name == name).unwrap()
}

/// Returns whether the attack notices what a bound forgets.
fn notices(name: &str, forget: impl Fn(&mut SharedCore)) -> bool {
    attack_as_if(named(name), 11, 150, 4, forget).broken > 0
}

#[test]
fn the_alarm_rings_when_the_test_forgets_something() {
    let no_io = |system: &mut SharedCore| system.ios.clear();
    let no_sections = |system: &mut SharedCore| system.kernel_section = Nanos::ZERO;
    let no_top_halves = |system: &mut SharedCore| system.sources.clear();
    let small_first = |system: &mut SharedCore| system.mains[0].budget = Nanos(1);
    let plain: fn(&mut SharedCore) =
        |system| system.ios.iter_mut().for_each(|io| io.cap = Nanos(20));
    assert!(notices("rms", plain));
    assert!(notices("rms", no_io));
    assert!(notices("rms-sections", no_sections));
    assert!(notices("rms-top-halves", no_top_halves));
    assert!(notices("edf", no_io));
    assert!(notices("edf-sections", no_sections));
    assert!(notices("edf-sections", no_top_halves));
    assert!(notices("csd-2", no_io));
    assert!(notices("csd-3", small_first));
    assert!(notices("csd-3-shared-io", no_io));
    let less = |system: &mut SharedCore| {
        let woken = Woken { used: Nanos(1), joined: 0, done: Nanos(100) };
        system.ios.iter_mut().for_each(|io| io.woken = Some(woken));
    };
    assert!(notices("rms-woken", less));
    assert!(notices("edf-woken", less));
}
