//! Programs on several cores that share a segment and a doorbell.

use super::{core, vcpu};
use crate::systems::drawn::{Budget, Drawn, DrawnBoard};

/// The doorbell that wakes the logger.
pub const READY: &str = "ready";
/// The time that each job of the controller computes, in microseconds.
const WORK: u64 = 200;
/// Its rings are at least so far apart, in microseconds: one in each tenth job.
const RINGS: u64 = 9_000;
/// Microseconds that its calls take at most at 1 GHz, and as much for switches.
const CALLS: u64 = 10;

/// The names of the Main VCPUs.
pub fn mains(drawn: &Drawn) -> Vec<String> {
    drawn.board.iter().flat_map(|_| ["direct", "logging"].map(String::from)).collect()
}

/// Writes the controller, the logger, what they share, and the program that rings too often.
pub fn board(drawn: &Drawn, board: &DrawnBoard) -> String {
    let DrawnBoard { control, logger, server, interval, storm } = board;
    let interval = drawn.calls(*interval).min(RINGS);
    let job = WORK + drawn.calls(CALLS);
    let own = Budget { budget: 1_000 * (job + drawn.calls(CALLS)), period: 1_000_000 };
    let mut text = format!(
        "\n[[segment]]\nname = \"board\"\nsize = \"4K\"\n\
         \n[[doorbell]]\nname = \"{READY}\"\nwakes = \"logger\"\ninterval = \"{interval}us\"\n\
         \n[[process]]\nname = \"controller\"\nprogram = \"cores-control\"\npriority = 50\n\
         vcpu = \"direct\"\nuses = [\"board\", \"{READY}\"]\n{}\
         \n[[process]]\nname = \"logger\"\nprogram = \"cores-logger\"\npriority = 20\n\
         vcpu = \"logging\"\nevents = 1\nuses = [\"board\"]\n{}",
        core(*control),
        core(*logger)
    );
    text += &vcpu("direct", own, &format!("job = \"{job}us\"\nreplenishments = 4\n"));
    text += &vcpu("logging", *server, "");
    if let Some(on) = storm {
        text += &format!(
            "\n[[process]]\nname = \"storm\"\nprogram = \"cores-hog\"\npriority = 63\n\
             uses = [\"{READY}\"]\narguments = [1]\n{}",
            core(*on)
        );
    }
    text
}
