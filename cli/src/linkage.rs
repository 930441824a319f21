//! The references in a linked image, from the relocations that the linker left in it.
//!
//! A disassembly shows calls but not every address that is taken; the relocations are what the
//! linker itself went by.

use crate::image::Image;
use object::{Object, ObjectSection, ObjectSymbol, RelocationKind, RelocationTarget, SymbolKind};
use std::ops::Range;

/// A named stretch of the image.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// As the linker knows it.
    pub name: String,
    pub at: Range<u64>,
}

/// An address that a place in the image holds or computes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reference {
    pub from: u64,
    pub to: u64,
    /// The symbol that was named; empty if it was a section.
    pub symbol: String,
}

/// The parts of an image and the references between them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Linkage {
    /// Functions whose size is known: all but those written in assembly. By rising address.
    pub functions: Vec<Part>,
    /// The addresses that the linker script defines, by name.
    pub symbols: Vec<(String, u64)>,
    /// References made by what is loaded.
    pub references: Vec<Reference>,
}

impl Linkage {
    /// Reads an image linked with `--emit-relocs`. One that is not understood has no parts.
    #[must_use]
    pub fn read(image: &Image) -> Linkage {
        let mut linkage = Linkage::default();
        let Ok(file) = image.parsed() else { return linkage };
        for symbol in file.symbols() {
            let Ok(name) = symbol.name().map(String::from) else { continue };
            let at = symbol.address()..symbol.address() + symbol.size();
            if symbol.kind() == SymbolKind::Text && !at.is_empty() {
                linkage.functions.push(Part { name, at });
            } else if symbol.is_global() {
                linkage.symbols.push((name, at.start));
            }
        }
        linkage.functions.sort_by_key(|part| part.at.start);
        for section in file.sections().filter(|section| section.address() != 0) {
            for (from, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else { continue };
                let Ok(symbol) = file.symbol_by_index(index) else { continue };
                // A processor counts from the end of the four bytes that hold the distance.
                let after = if relocation.kind() == RelocationKind::Absolute { 0 } else { 4 };
                let to = symbol.address().wrapping_add_signed(relocation.addend() + after);
                let symbol = symbol.name().unwrap_or_default().into();
                linkage.references.push(Reference { from, to, symbol });
            }
        }
        linkage
    }

    /// Returns the address of a symbol of the linker script.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.symbols.iter().find(|symbol| symbol.0 == name).map(|symbol| symbol.1)
    }

    /// Returns the function that `address` lies in.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<usize> {
        let next = self.functions.partition_point(|part| part.at.start <= address);
        let index = next.checked_sub(1)?;
        self.functions[index].at.contains(&address).then_some(index)
    }
}
