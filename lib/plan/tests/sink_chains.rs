//! The bill of a chain that ends at the endpoint of any device, and ways in which a description
//! could make it lie.

use diapason_abi::Nanos;
use diapason_pipe::bill::What;
use diapason_plan::Plan;
use diapason_plan::chains::ChainBill;
use diapason_plan::pipes::NoBill;
use diapason_system::parse;

/// From a pedal through three threads to a brake.
const TEXT: &str = include_str!("../../../examples/brake-by-wire.toml");
/// The pipe to the brake, whose period these tests change.
const PERIOD: &str = "period = \"10ms\"                #";

fn planned(changes: &[(&str, &str)]) -> Plan {
    let text = changes.iter().fold(TEXT.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    let system = parse("brake-by-wire.toml", &text).unwrap_or_else(|it| panic!("{it}"));
    Plan::of(&system)
}

fn bill(plan: &Plan) -> &ChainBill {
    plan.chains[0].bill.as_ref().expect("it has a bill")
}

/// Returns the chain's bill after these changes, which hold.
fn held(changes: &[(&str, &str)]) -> ChainBill {
    let plan = planned(changes);
    assert!(plan.holds(), "{:?}", plan.findings);
    bill(&plan).clone()
}

/// Returns the problems after these changes, which do not hold.
fn refused(changes: &[(&str, &str)]) -> String {
    let plan = planned(changes);
    assert!(!plan.holds());
    plan.findings.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Returns the period of the pipe to the brake that a refusal proposes, in us.
fn proposed(refusal: &str) -> u64 {
    let after = refusal.split("`period = \"").nth(1).expect("a period is proposed");
    after.split("us\"").next().and_then(|us| us.parse().ok()).expect("in us")
}

#[test]
fn the_bill_goes_from_the_pedal_to_the_acknowledged_packet_at_the_brake() {
    let plan = planned(&[]);
    let (bill, output) = (bill(&plan), *plan.pipes[1].bill.as_ref().expect("it has a bill"));
    let sum: u64 = bill.items.iter().map(|item| item.value.0).sum();
    assert_eq!(sum, bill.total.0);
    let last = &bill.items[bill.items.len() - 4..];
    let parts = [What::Taken, What::Bus, What::Device, What::Back].map(|it| output.value(it));
    assert_eq!(last.iter().map(|item| item.value).collect::<Vec<_>>(), parts);
    let writer = &bill.items[bill.items.len() - 5];
    assert_eq!((writer.what.as_str(), writer.thread), ("writer", Some(2)));
    // A packet that is twice as long at the device is as much later at the end of the chain.
    let slow = held(&[("takes = \"200us\"", "takes = \"700us\""), ("\"32ms\"", "\"99ms\"")]);
    assert!(slow.total >= bill.total + Nanos::from_micros(500), "{} {}", slow.total, bill.total);
}

/// The server takes a packet a period after the one before. A chain that may write two packets
/// closer together would let the second one wait for longer than its bill says.
#[test]
fn packets_that_may_leave_the_chain_too_close_together_are_refused() {
    let wanted = ("latency = \"32ms\"", "latency = \"99ms\"");
    let longer = refused(&[(PERIOD, "period = \"19ms\" #"), wanted]);
    assert!(longer.contains("`braking` may write two packets within"), "{longer}");
    let micros = proposed(&longer);
    let at = |micros: u64| format!("period = \"{micros}us\" #");
    held(&[(PERIOD, &at(micros)), wanted]);
    refused(&[(PERIOD, &at(micros + 1)), wanted]);
    // The distance is that of the messages of the pedal, without the delays that vary.
    let usual = held(&[]);
    let writer = usual.items.iter().find(|item| item.thread == Some(2));
    let after = writer.expect("it is there").after;
    assert!(micros * 1_000 + after.0 >= 20_000_000 - 10_000, "{micros} {after}");
    assert!(micros * 1_000 + after.0 < 20_200_000, "{micros} {after}");
}

#[test]
fn a_pedal_whose_clock_is_fast_sends_closer_together() {
    let wanted = ("latency = \"32ms\"", "latency = \"99ms\"");
    let longer = (PERIOD, "period = \"19ms\" #");
    let usual = proposed(&refused(&[longer, wanted]));
    let gap = ("gap = \"20ms\"", "gap = \"20ms\"\ndrift = 5000");
    let fast = proposed(&refused(&[longer, wanted, gap]));
    // 5,000 millionths of 20 ms are 100 us, and the usual drift is less.
    assert!(fast < usual && usual - fast <= 100, "{usual} {fast}");
}

#[test]
fn a_chain_to_a_pipe_without_a_bound_has_none() {
    let plan = planned(&[(PERIOD, "period = \"2ms\" #")]);
    assert!(!plan.holds() && plan.pipes[1].bill.is_err());
    match &plan.chains[0].bill {
        Err(NoBill::Missing(what, _)) => assert_eq!(what, "its pipe `commands` has none"),
        other => panic!("{other:?}"),
    }
}

/// A thread that samples writes once in its period, whatever comes.
#[test]
fn a_writer_that_samples_is_as_regular_as_its_period() {
    let state = [
        ("[[mailbox]]\nname = \"commands\"\nmessages = 4", "[[segment]]\nname = \"commands\""),
        ("\n\n[[process]]\nname = \"reader\"", "\nsize = \"4K\"\n\n[[process]]\nname = \"reader\""),
        ("by = \"commands\"", "by = \"commands\"\nevery = \"30ms\""),
        ("latency = \"32ms\"", "latency = \"99ms\""),
    ];
    let sampled = held(&state);
    let usual = held(&[]);
    assert!(sampled.total >= usual.total + Nanos::from_millis(29), "{}", sampled.total);
    let longer = [&state[..], &[(PERIOD, "period = \"30ms\" #")]].concat();
    let least = proposed(&refused(&longer));
    assert!((25_000..30_000).contains(&least), "{least}");
}

#[test]
fn a_writer_that_shares_its_vcpu_has_no_bound() {
    let shared = refused(&[("vcpu = \"spin\"", "vcpu = \"write\"")]);
    assert!(shared.contains("shares its VCPU"), "{shared}");
    let late = refused(&[("latency = \"32ms\"", "latency = \"3ms\"")]);
    assert!(late.contains("messages of `braking` may take"), "{late}");
}
