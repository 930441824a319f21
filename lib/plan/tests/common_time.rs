//! The common time of hosts: what its terms count, what it adds to flows beside it, and what is
//! refused.

use crate::lists::{changed, example};
use diapason_abi::Nanos;
use diapason_contract::time::{GptpTerms, TIME_SETTING};
use diapason_plan::{CommonTerms, FlowStage, NetworkPlan, Plan};
use diapason_system::Hosts;

const LIST: &str = "ethernet-time.toml";
const STATION: &str = "ethernet/station.toml";
const DRIVE: &str = "ethernet/drive.toml";
const KEYS: &str = "time = \"station:nic0\"          # the host of this adapter leads\n\
                    time_read = \"2us\"              # for two looks at the host's clock with the \
                    adapter's between\n\
                    time_losses = 3                # frames of a kind that may be lost in a row\n";

fn titles(plan: &NetworkPlan) -> Vec<String> {
    plan.refused.iter().flat_map(|it| it.items()).map(|it| it.title.to_owned()).collect()
}

fn plan(changes: &[(&str, &str, &str)]) -> (Hosts, NetworkPlan) {
    let hosts = changed(LIST, changes);
    let plan = NetworkPlan::of(&hosts);
    (hosts, plan)
}

/// Returns the terms of a list that holds.
fn terms(changes: &[(&str, &str, &str)]) -> CommonTerms {
    let (hosts, plan) = plan(changes);
    assert_eq!(titles(&plan), Vec::<String>::new());
    for host in &hosts.hosts {
        assert!(Plan::of(&host.system).holds(), "{}", host.name);
    }
    *plan.times[0].terms.as_ref().unwrap()
}

/// Returns an item of the first flow.
fn item(changes: &[(&str, &str, &str)], stage: FlowStage) -> Nanos {
    let (_, plan) = plan(changes);
    let bill = plan.flows[0].bill.as_ref().unwrap();
    bill.items.iter().find(|item| item.stage == stage).unwrap().value
}

const TURN: &str = "name = \"netd.send.time\"\nworst = \"20us\"";

#[test]
fn terms_follow_from_the_servers_of_both_hosts() {
    let usual = terms(&[]);
    let base = *usual.sync.base();
    assert_eq!((base.drift_ppm, base.wander_ppb, base.losses, base.hops), (100, 20, 3, 1));
    assert_eq!((base.link, usual.apart_ppm), (Nanos(500), 201));
    // A slower server of either host makes the time worse.
    let slower = "name = \"netd.send.time\"\nworst = \"21us\"";
    for host in [STATION, DRIVE] {
        let slow = terms(&[(host, TURN, slower)]);
        assert!(slow.sync.base().late > base.late, "{host}");
        assert!(slow.sync.error() >= usual.sync.error(), "{host}");
    }
    let worse = [
        ("time_losses = 3", "time_losses = 4"),
        ("time_read = \"2us\"", "time_read = \"3us\""),
        ("time_losses = 3", "time_losses = 3\ntime_wander = 100"),
        ("time_losses = 3", "time_losses = 3\ntime_drift = 120"),
    ];
    for (from, to) in worse {
        assert!(terms(&[(LIST, from, to)]).sync.error() > usual.sync.error(), "{to}");
    }
}

#[test]
fn flows_beside_a_common_time_wait_for_it() {
    let stages = [FlowStage::Sends, FlowStage::Wire, FlowStage::Receives];
    for stage in stages {
        assert!(item(&[], stage) > item(&[(LIST, KEYS, "")], stage), "{stage:?}");
    }
    let slower = "name = \"netd.send.time\"\nworst = \"30us\"";
    let waits = item(&[(STATION, TURN, slower)], FlowStage::Sends) - item(&[], FlowStage::Sends);
    // A turn is in the busy time at least once.
    assert!(waits >= Nanos(10_000), "{waits:?}");
}

#[test]
fn servers_are_told_the_terms() {
    let (mut hosts, plan) = plan(&[]);
    plan.instruct(&mut hosts);
    let told = |host: usize| {
        let mut processes = hosts.hosts[host].system.processes.iter();
        GptpTerms::of(processes.find(|it| it.program == "netd").unwrap().setting(TIME_SETTING))
    };
    let [leads, follows] = [0, 1].map(|host| told(host).unwrap());
    assert_eq!((leads.priority, follows.priority), (1, 255));
    assert_eq!((leads.base, leads.apart_ppm), (follows.base, 201));
    let (mut hosts, plan) = self::plan(&[(LIST, KEYS, "")]);
    plan.instruct(&mut hosts);
    let processes = &hosts.hosts[0].system.processes;
    assert!(processes.iter().all(|it| it.setting(TIME_SETTING).is_empty()));
}

/// Adds gates to the adapter of the station.
fn gated(guard: &str, drift: &str) -> Vec<String> {
    let keys = format!(
        "{drift}time_losses = 3\n[[ethernet.gates]]\nend = \"station:nic0\"\nguard = \"{guard}\"\n\
         entries = [\"S 40 3ms\", \"S 3f 3ms\"]\n"
    );
    let (_, plan) = plan(&[
        (LIST, "time_losses = 3", &keys),
        (LIST, "period = \"4ms\"", "period = \"8ms\""),
        (LIST, "period = \"2ms\"", "period = \"4ms\""),
        (LIST, "latency = \"5ms\"", "latency = \"12ms\""),
        (LIST, "latency = \"20ms\"", "latency = \"12ms\""),
    ]);
    titles(&plan)
}

/// The guard has room for turns of the time, for its frames ahead, and for clocks that run apart.
#[test]
fn gates_beside_a_common_time_need_a_longer_guard() {
    assert_eq!(gated("710us", ""), Vec::<String>::new());
    let short = gated("690us", "");
    assert!(short.iter().any(|it| it.contains("a frame may take")), "{short:#?}");
    let needed = |drift: &str| {
        let titles = gated("690us", drift);
        let title = titles.iter().find_map(|it| it.split_once("a frame may take ")).unwrap();
        title.1.split_once(" us").unwrap().0.parse::<f64>().unwrap()
    };
    // 1,800 millionths of 700 us are 1.3 us.
    let more = needed("time_drift = 1000\n") - needed("");
    assert!((1.2..1.4).contains(&more), "{more}");
}

/// The server watches what comes to an adapter without flows, because the time relies on it.
#[test]
fn the_frames_that_come_are_watched() {
    let watches = |changes: &[(&str, &str, &str)]| {
        let system = changed(LIST, changes).hosts.swap_remove(0).system;
        let cleared = Plan::of(&system).clear().ok().unwrap();
        let processes = &cleared.system().processes;
        let server = processes.iter().find(|it| it.program == "netd").unwrap();
        !server.setting(diapason_contract::ethernet::WATCH_SETTING).is_empty()
    };
    assert!(watches(&[]) && !watches(&[(LIST, KEYS, "")]));
}

#[test]
fn a_common_time_without_a_bound_is_refused() {
    let refused = |changes: &[(&str, &str, &str)], part: &str| {
        let (_, plan) = plan(changes);
        let start = "the common time of `wire` has no bound: ";
        let found = titles(&plan);
        let is = |title: &&String| title.starts_with(start) && title.contains(part);
        assert!(found.iter().any(|title| is(&title)), "{part}: {found:#?}");
        assert!(!plan.holds());
    };
    let unused = "name = \"unused\"\nworst = \"20us\"";
    for host in [STATION, DRIVE] {
        refused(&[(host, TURN, unused)], "nothing says how long `netd.send.time` takes");
    }
    let few = "mac = \"02:00:00:00:00:01\"\nrate = 23\nburst = 16";
    let own = "mac = \"02:00:00:00:00:01\"";
    refused(&[(STATION, own, few)], "more frames come to `station:nic0` than its `rate` says");
    let once = "mac = \"02:00:00:00:00:01\"\nrate = 24\nburst = 15";
    refused(&[(STATION, own, once)], "more frames come to `station:nic0` than its `rate` says");
    terms(&[(STATION, own, "mac = \"02:00:00:00:00:01\"\nrate = 24\nburst = 16")]);
    // The other host's server cannot do a turn each 500 us.
    let slow = "name = \"netd.send.time\"\nworst = \"60us\"";
    refused(&[(DRIVE, TURN, slow)], "`drive:net` cannot keep up with the frames that it sends");
    let shared = [(DRIVE, "vcpu = \"drive-cpu\"", "vcpu = \"send\"")];
    refused(&shared, "");
    let threads = [(DRIVE, "threads = 2", "threads = 3")];
    refused(&threads, "others may use the VCPU on which `net` sends");
    // Nothing bounds what the camera sends.
    let text = example(LIST);
    let pictures = &text[text.find("[[flow]]\nname = \"pictures\"").unwrap()..];
    refused(&[(LIST, pictures, "")], "`station:camera` may send by the same adapter");
}

#[test]
fn a_slow_server_has_no_common_time() {
    let own = "budget = \"60us\"\nperiod = \"1ms\"\nreplenishments = 6";
    let slow = "budget = \"9ms\"\nperiod = \"50ms\"\nreplenishments = 6";
    let found = titles(&plan(&[(DRIVE, own, slow)]).1);
    let late = "the common time of `wire` has no bound: a Sync must arrive before the next is due";
    assert!(found.iter().any(|title| title.starts_with(late)), "{found:#?}");
}
