//! The numbers that a bill needs and the description lacks: all at once, so that a description is
//! mended once.

use crate::pipes::{Half, Missing, Plant, own_supply};
use diapason_system::Way;

impl Plant<'_> {
    /// Everything that is missing for the bill of a pipe, in the order in which a bill asks.
    pub(crate) fn lacks(&self, index: usize) -> Vec<Missing> {
        let pipe = &self.system.pipes[index];
        let to_device = pipe.way == Way::ToDevice;
        let own = || own_supply(pipe.process, self.system, self.core).err();
        let locks = if to_device { Vec::new() } else { self.mutexes.lacks(pipe.process) };
        let asked = [
            self.locks_nothing(pipe.server).err(),
            self.half(pipe, Half::Receives).err(),
            to_device.then(|| self.half(pipe, Half::Sends).err()).flatten(),
            self.attendance(pipe.server).err(),
            if to_device { self.acknowledged(pipe).err() } else { own() },
            self.transfers(pipe.usb).err(),
        ];
        asked.into_iter().flatten().chain(locks).collect()
    }
}

/// Returns the refusal of a bill for threads whose work is not declared.
pub(crate) fn works(names: &[&str]) -> Missing {
    let listed = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ");
    let verb = if names.len() == 1 { "takes" } else { "take" };
    let each = names.iter().map(|name| format!("`name = \"{name}\"`")).collect::<Vec<_>>();
    let remedy = format!("add `[[work]]` with {} and `worst = \"40us\"`", each.join(", one with "));
    (format!("nothing says how long {listed} {verb}"), remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_work_and_several() {
        let (what, remedy) = works(&["a"]);
        assert_eq!(what, "nothing says how long `a` takes");
        assert_eq!(remedy, "add `[[work]]` with `name = \"a\"` and `worst = \"40us\"`");
        let (what, remedy) = works(&["a", "b"]);
        assert_eq!(what, "nothing says how long `a` and `b` take");
        assert!(remedy.contains("`name = \"a\"`, one with `name = \"b\"`"), "{remedy}");
    }
}
