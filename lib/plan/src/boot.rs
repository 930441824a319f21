//! From a plan to the boot archive.

use crate::{Plan, sockets};
use diapason_abi::pipe::{COSTS, OUTPUT_COSTS};
use diapason_contract::ethernet::WATCH_SETTING;
use diapason_system::{Diagnostics, Permit, RunOptions, Setting, System};

/// The wish to boot a system whatever its plan says. Every report of a run with one says that
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
    /// Returns the system, if its plan holds.
    ///
    /// # Errors
    /// The first reason why it must not boot.
    pub fn clear(&self) -> Result<Cleared, Diagnostics> {
        match self.findings.first() {
            Some(found) => Err(found.clone()),
            None => Ok(Cleared { system: self.told(), proved: true }),
        }
    }

    /// Returns the system, whether its plan holds or not.
    #[must_use]
    pub fn clear_anyway(&self, _: Unproved) -> Cleared {
        Cleared { system: self.told(), proved: self.holds() }
    }

    /// Returns the system with what its servers are told: the costs that this plan computes with.
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
        for (server, words) in sockets::watched(&system, &self.sockets, &self.came) {
            let settings = &mut system.processes[usize::from(server)].settings;
            settings.push(Setting::new(WATCH_SETTING, &words));
        }
        system
    }
}

impl Cleared {
    /// Returns the system as it boots.
    #[must_use]
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns whether its plan holds.
    #[must_use]
    pub const fn is_proved(&self) -> bool {
        self.proved
    }

    /// Returns its boot archive; see [`diapason_system::build`].
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    fn plan(budget: &str) -> Plan {
        let text = format!(
            "[system]\nname = \"s\"\n[[vcpu]]\nname = \"v\"\nbudget = \"{budget}\"\n\
             period = \"10ms\"\n[[process]]\nname = \"p\"\npriority = 1\nvcpu = \"v\"\n"
        );
        let system = diapason_system::parse("f", &text).unwrap_or_else(|wrong| panic!("{wrong}"));
        Plan::of(&system)
    }

    #[test]
    fn only_a_plan_that_holds_clears_its_system() {
        let holds = plan("1ms").clear().unwrap();
        assert!(holds.is_proved());
        let too_much = plan("10ms");
        assert!(too_much.clear().is_err());
        assert!(!too_much.clear_anyway(Unproved).is_proved());
        assert!(plan("1ms").clear_anyway(Unproved).is_proved(), "whether it was asked for or not");
    }

    #[test]
    fn an_empty_promise_is_none() {
        assert_eq!(plan("1ms").verdict(), Verdict::Holds);
        assert_eq!(plan("10ms").verdict(), Verdict::DoesNotHold);
        let text = "[system]\nname = \"s\"\n[[process]]\nname = \"p\"\npriority = 1\n";
        let system = diapason_system::parse("f", text).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!(Plan::of(&system).verdict(), Verdict::PromisesNothing);
    }
}
