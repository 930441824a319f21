//! Pipes whose readers are on other cores than the server, and ways in which a description could
//! make their bills lie.

use diapason_abi::Nanos;
use diapason_contract::source::LOOK;
use diapason_pipe::bill::{Basis, Bill, What};
use diapason_plan::Plan;
use diapason_system::{System, parse_cores};

const CAMERAS: &str = include_str!("../../../examples/four-cameras.toml");

fn cores(changes: &[(&str, &str)]) -> Vec<System> {
    let changed = changes.iter().fold(CAMERAS.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    });
    parse_cores("four-cameras.toml", &changed).unwrap_or_else(|wrong| panic!("{wrong}"))
}

fn planned(changes: &[(&str, &str)]) -> Vec<Plan> {
    Plan::of_cores(&cores(changes))
}

fn bill(plans: &[Plan], pipe: usize) -> Bill {
    *plans[0].pipes[pipe].bill.as_ref().expect("it has a bill")
}

/// Returns the titles of all refusals after these changes.
fn refused(changes: &[(&str, &str)]) -> String {
    let plans = planned(changes);
    let found = plans.iter().flat_map(|plan| &plan.findings);
    found.map(|found| found.items()[0].title.to_owned()).collect::<Vec<_>>().join("; ")
}

/// The reader of the second pipe, and its VCPU, on core 1.
const READER: &str = "vcpu = \"rear-cpu\"\n";
const BUDGET: &str = "name = \"rear-cpu\"\nbudget = \"150us\"";

#[test]
fn a_reader_on_another_core_looks_and_is_not_woken() {
    let plans = planned(&[]);
    assert!(plans.iter().all(Plan::holds));
    let (near, far) = (bill(&plans, 0), bill(&plans, 1));
    assert_eq!(near.value(What::Look), Nanos::ZERO);
    let look = far.value(What::Look);
    assert!(look > LOOK && look < LOOK + Nanos::from_micros(10), "{look:?}");
    assert_eq!(far.item(What::Look).unwrap().basis, Basis::Given);
    let sum: u64 = far.items().iter().map(|item| item.value.0).sum();
    assert_eq!(sum, far.total.0);
    // Each picture stays as long as before on the way to the server.
    assert_eq!(near.before(What::User), far.before(What::User) - look);
}

#[test]
fn the_plan_of_the_readers_core_has_the_bill() {
    let plans = planned(&[]);
    let counts: Vec<usize> = plans.iter().map(|plan| plan.far.len()).collect();
    assert_eq!(counts, [0, 1, 1, 1]);
    let far = &plans[1].far[0];
    assert_eq!((far.pipe.name.as_str(), far.reader), ("behind", 0));
    assert_eq!(far.piped.bill.as_ref().unwrap().total, bill(&plans, 1).total);
}

#[test]
fn one_core_alone_promises_nothing_of_a_pipe_to_another() {
    let systems = cores(&[]);
    let alone = Plan::of(&systems[0]);
    assert!(!alone.holds());
    let found = alone.findings[0].plain();
    assert!(found.contains("the reader is on core 1, which is not planned here"), "{found}");
    assert!(Plan::of(&systems[1]).far.is_empty());
}

/// The server need not be on the first core.
#[test]
fn the_server_may_be_on_any_core() {
    let systems = cores(&[
        ("[usbd]\n", "[usbd]\ncore = 2\n"),
        ("serves = [\"usb-manage\", \"front-cpu\"]", "serves = [\"usb-manage\"]"),
        (
            "name = \"usb-camera2\"\n",
            "name = \"usb-camera2\"\nserves = [\"usb-manage\", \"left-cpu\"]\n",
        ),
    ]);
    let plans = Plan::of_cores(&systems);
    let counts: Vec<usize> = plans.iter().map(|plan| plan.far.len()).collect();
    assert_eq!(counts, [1, 1, 0, 1]);
    let bills = plans[2].pipes.iter().map(|piped| *piped.bill.as_ref().expect("it has a bill"));
    let looks: Vec<bool> = bills.map(|bill| bill.value(What::Look) > Nanos::ZERO).collect();
    assert_eq!(looks, [true, true, false, true]);
    let alone = Plan::of(&systems[2]).findings[0].plain();
    assert!(alone.contains("the reader is on core 0, which is not planned here"), "{alone}");
}

#[test]
fn the_readers_core_has_to_hold() {
    let hog = "[[vcpu]]\nname = \"hog-cpu\"\nbudget = \"1900us\"\nperiod = \"2ms\"\n\
               [[process]]\nname = \"hog\"\nprogram = \"spin\"\ncore = 1\npriority = 50\n\
               vcpu = \"hog-cpu\"\n[[vcpu]]\nname = \"rear-cpu\"";
    let title = refused(&[("[[vcpu]]\nname = \"rear-cpu\"", hog)]);
    assert!(
        title.contains("`behind` has no bound: the VCPU of `avoid-rear` does not get"),
        "{title}"
    );
}

#[test]
fn looks_that_find_nothing_take_budget_too() {
    // Four looks in 2 ms, each of a call of 1.4 us, are more than this budget has beside pieces.
    let least = |budget: &str| {
        let to = BUDGET.replace("150us", budget);
        planned(&[(BUDGET, &to)])[0].pipes[1].bill.as_ref().ok().copied()
    };
    assert!(least("150us").is_some());
    let woken = "name = \"front-cpu\"\nbudget = \"150us\"";
    let near = |budget: &str| {
        let to = woken.replace("150us", budget);
        planned(&[(woken, &to)])[0].pipes[0].bill.as_ref().ok().copied()
    };
    let shortest = |holds: &dyn Fn(&str) -> bool| {
        (100..150).find(|budget| holds(&format!("{budget}us"))).unwrap_or(150)
    };
    let (looking, waiting) =
        (shortest(&|budget| least(budget).is_some()), shortest(&|budget| near(budget).is_some()));
    assert!(looking >= waiting, "{looking} us, and {waiting} us of a reader that is woken");
}

#[test]
fn whatever_delays_the_reader_is_refused() {
    let guest = |more: &str| {
        format!(
            "{READER}[[process]]\nname = \"guest\"\nprogram = \"spin\"\ncore = 1\n\
             priority = 9\n{more}"
        )
    };
    let second = guest(READER);
    let title = refused(&[(READER, &second)]);
    assert!(title.contains("`behind` has no bound: `avoid-rear` shares its VCPU"), "{title}");
    let threads = format!("{READER}threads = 2\n");
    let title = refused(&[(READER, &threads)]);
    assert!(title.contains("`avoid-rear` may have 2 threads on one VCPU"), "{title}");
    let squatter = guest("uses = [\"rear-cpu\"]\n");
    let title = refused(&[(READER, &squatter)]);
    assert!(title.contains("`guest` may put threads on the VCPU of `avoid-rear`"), "{title}");
    let used = format!("{READER}uses = [\"m\"]\n[[semaphore]]\nname = \"m\"\n");
    let mutex = guest("uses = [\"m\"]\n").replacen(READER, &used, 1);
    let title = refused(&[(READER, &mutex)]);
    assert!(
        title.contains("`behind` has no bound: nothing says how long `avoid-rear` holds"),
        "{title}"
    );
}

#[test]
fn a_thread_reads_one_pipe_of_whatever_core() {
    let title = refused(&[("reader = \"avoid-left\"", "reader = \"avoid-rear\"")]);
    assert!(title.contains("`avoid-rear` reads"), "{title}");
}

#[test]
fn a_reader_that_is_away_too_long_has_too_few_places() {
    let usual = format!("{BUDGET}\nperiod = \"2ms\"");
    let slow = usual.replace("150us", "700us").replace("2ms", "9ms");
    let title = refused(&[(&usual, &slow)]);
    assert!(title.contains("`rear` may lack places"), "{title}");
}
