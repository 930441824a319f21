//! `cargo xtask attack`: the long campaigns against everything that promises something. Each is an
//! ignored test of its package, optimized; the normal run has a short form of it.

use crate::tally::Tally;
use diapason::Workspace;
use std::process::Command;

/// One campaign: what it attacks, and where it is.
pub(crate) struct Campaign {
    pub what: &'static str,
    package: &'static str,
    /// The test program, and a module of it if it has other tests, too.
    tests: &'static [&'static str],
}

const fn campaign(
    what: &'static str,
    package: &'static str,
    tests: &'static [&'static str],
) -> Campaign {
    Campaign { what, package, tests }
}

/// The long attacks, in the order in which they run.
pub(crate) const CAMPAIGNS: &[Campaign] = &[
    campaign("server rules and closed forms", "diapason-vcpu", &["attacks"]),
    campaign("exact tests and bounds of VCPUs", "diapason-analysis", &["all", "server_attack::"]),
    campaign("tests of CSD queues", "diapason-csd", &["attack"]),
    campaign("search for the best queues", "diapason-csd", &["search"]),
    campaign("bills of pipes and chains", "diapason-pipe", &["attack"]),
    campaign("bus schedules", "diapason-bus", &["all", "attack::"]),
    campaign("hostile USB devices", "diapason-usb", &["hostile_devices"]),
    campaign("a hostile USB controller", "diapason-usb", &["xhci"]),
    campaign("damaged frames on Ethernet", "diapason-ether", &["all", "frames::"]),
    campaign("response times on CAN", "diapason-can", &["all", "response::"]),
    campaign("classes of messages on CAN", "diapason-can", &["all", "mts::"]),
    campaign("nodes with mixed traffic on CAN", "diapason-can", &["all", "mts_nodes::"]),
];

/// Returns all campaigns whose description or package contains `part`; the exit code.
pub fn command(workspace: &Workspace, part: &str) -> u8 {
    let mut tally = Tally::default();
    let chosen = |c: &&Campaign| c.what.contains(part) || c.package.contains(part);
    for campaign in CAMPAIGNS.iter().filter(chosen) {
        tally.step(campaign.what, || run(workspace, campaign));
    }
    tally.finish()
}

fn run(workspace: &Workspace, campaign: &Campaign) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace.root());
    command.args(["test", "--quiet", "--release", "-p", campaign.package]);
    command.arg("--test").args(campaign.tests).args(["--", "--ignored", "--nocapture"]);
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("a promise was broken, or the attack found nothing to attack".into()),
        Err(error) => Err(format!("cannot start cargo: {error}")),
    }
}
