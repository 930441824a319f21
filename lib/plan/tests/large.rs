//! A large system is planned in a bounded number of steps. Steps are counted, not time: one is a
//! term ⌈window / period⌉ · cost, of which almost all of the time goes into.

use diapason_analysis::server::TERMS;
use diapason_plan::Plan;
use diapason_system::parse;
use std::fmt::Write;
use std::sync::atomic::Ordering;

/// Five pipes and two chains.
const GATEWAY: &str = include_str!("../../../examples/can-gateway.toml");
const HOSTS: usize = 40;
/// VCPUs of the gateway, and those that are put beside them.
const VCPUS: (usize, usize) = (11, 1_000);
/// Most terms, almost three times what they are today.
const TERMS_MAX: u64 = 30_000_000;

/// Returns a gateway on a fast processor, with a thousand VCPUs below its own. Their periods are 50
/// ms to 1 s. They take half of what is left.
fn crowded() -> String {
    let clock = "memory = \"32M\"\nclock = \"10GHz\"";
    let mut text = GATEWAY.replacen("memory = \"32M\"", clock, 1);
    for number in 0..VCPUS.1 as u64 {
        let period = 50_000 + number * 7_919 % 950_000;
        let budget = (period / 10_000).max(1);
        let vcpu =
            format!("name = \"v{number}\"\nbudget = \"{budget}us\"\nperiod = \"{period}us\"");
        let _ = writeln!(text, "\n[[vcpu]]\n{vcpu}");
    }
    text
}

/// Forty hosts have 200 pipes and 80 chains; one of them has a thousand VCPUs more.
#[test]
fn a_thousand_vcpus_and_two_hundred_pipes_are_planned_in_a_bounded_number_of_steps() {
    let begin = TERMS.load(Ordering::Relaxed);
    let (mut pipes, mut chains) = (0, 0);
    for host in 0..HOSTS {
        let text = if host == 0 { crowded() } else { GATEWAY.to_owned() };
        let system = parse("gateway.toml", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        pipes += system.pipes.len();
        chains += system.chains.len();
        let plan = Plan::of(&system);
        assert_eq!(plan.holds(), host != 0);
        assert!(host != 0 || system.vcpus.len() >= VCPUS.0 + VCPUS.1);
    }
    assert_eq!((pipes, chains), (200, 80));
    let terms = TERMS.load(Ordering::Relaxed) - begin;
    println!("{terms} terms");
    assert!(terms > VCPUS.1 as u64 * VCPUS.1 as u64, "{terms}: the VCPUs were not analysed");
    assert!(terms <= TERMS_MAX, "{terms} of {TERMS_MAX}");
}
