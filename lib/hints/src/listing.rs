//! The attribute's insertions, for people: every blocking call of the tasks of a source file.

use crate::Problem;
use crate::flow::{Site, analyse};
use quote::quote;
use std::fmt::Write;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, ImplItemFn, ItemFn, Signature, TraitItemFn};

/// The tasks of a file.
#[derive(Debug, Default)]
pub struct Listing {
    /// Each function with `#[hints]`, with its blocking calls.
    pub tasks: Vec<(String, Vec<Site>)>,
    /// The problems that prevent hints.
    pub problems: Vec<Problem>,
}

impl Listing {
    /// Returns one line per blocking call.
    #[must_use]
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (function, sites) in &self.tasks {
            if sites.is_empty() {
                let _ = writeln!(text, "{function}: no blocking call");
            }
            for Site { line, call, hint, .. } in sites {
                let _ = writeln!(text, "{function}: line {line}: {call} -> {hint}");
            }
        }
        text
    }
}

/// Reads the source text of a file.
///
/// # Errors
/// If it is not Rust.
pub fn listing(source: &str) -> Result<Listing, Problem> {
    let file = syn::parse_file(source)?;
    let mut listing = Listing::default();
    listing.visit_file(&file);
    Ok(listing)
}

fn is_task(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().segments.last().is_some_and(|segment| segment.ident == "hints")
    })
}

impl Listing {
    fn add(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if !is_task(attributes) {
            return;
        }
        let analysed = syn::parse2(quote!(#signature #block))
            .map_err(|error| vec![Problem::from(error)])
            .and_then(|mut function: ItemFn| analyse(&mut function));
        match analysed {
            Ok(analysis) => self.tasks.push((signature.ident.to_string(), analysis.sites)),
            Err(problems) => self.problems.extend(problems),
        }
    }
}

impl<'ast> Visit<'ast> for Listing {
    fn visit_item_fn(&mut self, function: &'ast ItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast ImplItemFn) {
        self.add(&function.attrs, &function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast TraitItemFn) {
        if let Some(block) = &function.default {
            self.add(&function.attrs, &function.sig, block);
        }
        visit::visit_trait_item_fn(self, function);
    }
}
