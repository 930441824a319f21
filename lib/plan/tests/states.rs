//! State messages: a read has a bound, or the plan says why not.

use diapason_plan::states::read_instructions;
use diapason_plan::{Plan, Verdict};
use diapason_system::parse;

/// A writer on a VCPU of 5 ms, and a reader on one of 20 ms.
const SYSTEM: &str = "[system]\nname = \"s\"
[[process]]\nname = \"w\"\npriority = 1\nvcpu = \"wv\"
[[process]]\nname = \"r\"\npriority = 1\nvcpu = \"rv\"
[[vcpu]]\nname = \"wv\"\nbudget = \"1ms\"\nperiod = \"5ms\"
[[vcpu]]\nname = \"rv\"\nbudget = \"1ms\"\nperiod = \"20ms\"
[[state]]\nname = \"speed\"\nfields = [\"all: [u64; 4]\"]\nwriter = \"w\"\n\
readers = [\"r\"]\nperiod = \"5ms\"
";

fn plan(text: &str) -> Plan {
    let system = parse("s.toml", text).unwrap_or_else(|why| panic!("{why}"));
    Plan::of(&system)
}

#[track_caller]
fn refused(text: &str, says: &str) {
    let plan = plan(text);
    let found: Vec<String> = plan.findings.iter().map(|found| found.plain()).collect();
    assert!(found.iter().any(|found| found.contains(says)), "{says}: {found:#?}");
    assert!(found.iter().any(|found| found.contains("s.toml:20:8")), "{found:#?}");
}

#[test]
fn a_reader_with_a_vcpu_of_its_own_has_a_bound() {
    assert_eq!(plan(SYSTEM).verdict(), Verdict::Holds);
}

#[test]
fn others_on_the_vcpu_of_a_reader_leave_no_bound() {
    let says = "no bound on a read of `speed`: `r`";
    refused(&SYSTEM.replace("vcpu = \"wv\"", "vcpu = \"rv\""), says);
    let threads = SYSTEM.replace("vcpu = \"rv\"\n", "vcpu = \"rv\"\nthreads = 2\n");
    let found = plan(&threads).findings;
    assert!(found[0].plain().contains("`r` may have 2 threads on one VCPU"), "{found:?}");
    // The writer may share its VCPU, and have other threads.
    let writer = SYSTEM.replace("vcpu = \"wv\"\n", "vcpu = \"wv\"\nthreads = 4\n");
    assert!(plan(&writer).holds());
}

#[test]
fn a_read_that_needs_several_budgets_is_refused() {
    assert_eq!(read_instructions(4_096), 200 + 16 * 512);
    let text = SYSTEM.replace("[u64; 4]", "[u64; 512]");
    assert!(plan(&text).holds(), "8.4 us of a budget of 1 ms");
    // At 100 MHz a read takes 84 us. Below some budget it needs those of several periods.
    let slow = text.replace("name = \"s\"\n", "name = \"s\"\nclock = \"100MHz\"\n");
    let says = |budget: u64| {
        let reader = format!("name = \"rv\"\nbudget = \"{budget}us\"");
        let plan = plan(&slow.replace("name = \"rv\"\nbudget = \"1ms\"", &reader));
        plan.findings.iter().any(|found| found.plain().contains("may take"))
    };
    assert!(!says(1_000));
    assert!((1..50).any(|tens| says(10 * tens)));
}
