//! The keys that descriptions can have, as the reader itself asks for them.
//!
//! The reader notes each key and what its value has to be. So a schema for editors needs no second
//! list of keys that could say something else.

use crate::diagnostics::Report;
use crate::value::KnownKey;
use crate::{hosts, read, syntax};

/// Returns the keys that the reader asks for in a description or a list of hosts. It asks for all
/// keys of each table that is there, and for some only beside others.
#[must_use]
pub fn known_keys(text: &str) -> Vec<KnownKey> {
    let mut report = Report::new();
    let table = syntax::table(text, &mut report);
    if hosts::lists_hosts(table.get_ref()) {
        hosts::declarations(&table, &mut report);
    } else {
        read::declarations(&table, &mut report);
    }
    report.into_keys()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::ValueKind;

    #[test]
    fn the_reader_says_which_keys_it_knows() {
        let keys = known_keys(
            "[system]\nname = \"a\"\n[[segment]]\nname = \"b\"\nsize = \"4K\"\nodd = 1\n",
        );
        let of = |table: &str, key: &str| {
            keys.iter().find(|known| (known.table, known.key) == (table, key)).map(|it| &it.kind)
        };
        assert_eq!(of("[[segment]]", "size"), Some(&ValueKind::Size));
        assert_eq!(of("[[segment]]", "dma"), Some(&ValueKind::Flag));
        assert_eq!(of("[system]", "cores"), Some(&ValueKind::Number(1..=8)));
        assert_eq!(of("the description", "process"), Some(&ValueKind::Tables));
        assert_eq!(of("[[segment]]", "odd"), None);
        assert_eq!(of("[[host]]", "system"), None);
        let keys = known_keys("[[host]]\nname = \"a\"\n");
        assert!(keys.iter().any(|known| (known.table, known.key) == ("[[host]]", "system")));
    }
}
