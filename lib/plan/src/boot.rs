//! From a plan to the boot archive.

use crate::Plan;
use diapason_abi::pipe::{COSTS, OUTPUT_COSTS};
use diapason_system::{Diagnostics, Permit, RunOptions, Setting, System};

/// The wish to boot a system whatever its plan says. Whoever has one says in every report that
/// nothing is proved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unproved;

/// A system that may boot: its plan holds, or somebody wanted it [`Unproved`].
#[derive(Clone, Debug)]
pub struct Cleared {
    system: System,
    proved: bool,
}

impl Plan {
    /// The system, if its plan holds.
    ///
    /// # Errors
    /// The first reason why it must not boot.
    pub fn clear(&self) -> Result<Cleared, Diagnostics> {
        match self.findings.first() {
            Some(found) => Err(found.clone()),
            None => Ok(Cleared { system: self.told(), proved: true }),
        }
    }

    /// The system, whether its plan holds or not.
    #[must_use]
    pub fn clear_anyway(&self, _: Unproved) -> Cleared {
        Cleared { system: self.told(), proved: self.holds() }
    }

    /// The system with what its servers are told: the costs that this plan computes with.
    fn told(&self) -> System {
        let mut system = self.system().clone();
        for (place, costs) in self.tuned.iter().enumerate() {
            let server = usize::from(system.tpipes[place].server);
            let settings = &mut system.processes[server].settings;
            let is_told = settings.iter().any(|setting| setting.name == COSTS);
            if let (Ok((costs, output)), false) = (costs, is_told) {
                settings.push(Setting::new(COSTS, &costs.words()));
                settings.extend(output.map(|costs| Setting::new(OUTPUT_COSTS, &costs.words())));
            }
        }
        system
    }
}

impl Cleared {
    /// The system as it boots.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Whether its plan holds.
    #[must_use]
    pub const fn is_proved(&self) -> bool {
        self.proved
    }

    /// Its boot archive; see [`diapason_system::build`].
    ///
    /// # Errors
    /// Programs that are missing or cannot be loaded, and memory that does not suffice.
    pub fn archive(
        &self,
        options: &RunOptions,
        image_of: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<Vec<u8>, Diagnostics> {
        diapason_system::build(Permit::granted(), &self.system, options, image_of)
    }
}
