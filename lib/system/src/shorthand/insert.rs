//! Puts what `[usbd]` brings into the tables of a description, where that has nothing itself.

use super::{Brought, KEY, OWN};
use crate::source::Span;
use diapason_contract::settings::SETTINGS;
use std::borrow::Cow;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

type Key<'t> = Spanned<Cow<'t, str>>;
type Value<'t> = Spanned<DeValue<'t>>;

/// Adds every key that an item of the description lacks. All of it stands at the place of
/// `[usbd]`.
pub(crate) fn insert<'t>(table: &mut DeTable<'t>, brought: &'t [Brought]) {
    let (Some(first), Some(own)) = (brought.first(), table.get(KEY)) else { return };
    let at = own.span();
    for (key, value) in own_keys(own) {
        let is_setting = SETTINGS.iter().any(|(name, _)| name == key.get_ref());
        let Some(process) = item(table, first, &at) else { return };
        let process = if is_setting { inner(process, &at) } else { Some(process) };
        let is_known = is_setting || OWN.contains(&key.get_ref().as_ref());
        if let Some(process) = process.filter(|_| is_known) {
            process.entry(key).or_insert(value);
        }
    }
    for each in brought {
        let Ok(line) = DeTable::parse(&each.line) else { continue };
        if let Some(item) = item(table, each, &at) {
            fill(item, placed_table(line.into_inner(), &at));
        }
    }
}

/// Returns the entries of `[usbd]`.
fn own_keys<'t>(own: &Value<'t>) -> Vec<(Key<'t>, Value<'t>)> {
    let own = own.get_ref().as_table().into_iter().flatten();
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// Returns the item that a key belongs to. A new one stands in its list where `[usbd]` stands in
/// the text.
fn item<'a, 't>(
    table: &'a mut DeTable<'t>,
    of: &Brought,
    at: &Span,
) -> Option<&'a mut DeTable<'t>> {
    let empty = Spanned::new(at.clone(), DeValue::Array(DeArray::new()));
    let list = table.entry(key(of.list, at)).or_insert(empty);
    let DeValue::Array(items) = list.get_mut() else { return None };
    let is_it = |item: &Value<'t>| {
        let name = item.get_ref().as_table().and_then(|table| table.get("name"));
        name.and_then(|name| name.get_ref().as_str()) == Some(&of.name)
    };
    let place = match items.iter().position(is_it) {
        Some(place) => place,
        None => {
            let mut new = DeTable::new();
            let name = DeValue::String(Cow::Owned(of.name.clone()));
            new.insert(key("name", at), Spanned::new(at.clone(), name));
            let place = items.iter().position(|item| start_of(item).start > at.start);
            items.push(Spanned::new(at.clone(), DeValue::Table(new)));
            let place = place.unwrap_or(items.len() - 1);
            items.as_mut()[place..].rotate_right(1);
            place
        }
    };
    match items.as_mut()[place].get_mut() {
        DeValue::Table(item) => Some(item),
        _ => None,
    }
}

/// Returns where an item is, by its name: the span of a table may be that of its header alone.
fn start_of(item: &Value<'_>) -> Span {
    let name = item.get_ref().as_table().and_then(|table| table.get("name"));
    name.map_or_else(|| item.span(), Spanned::span)
}

/// Returns the settings of a process.
fn inner<'a, 't>(process: &'a mut DeTable<'t>, at: &Span) -> Option<&'a mut DeTable<'t>> {
    let empty = Spanned::new(at.clone(), DeValue::Table(DeTable::new()));
    match process.entry(key("settings", at)).or_insert(empty).get_mut() {
        DeValue::Table(inner) => Some(inner),
        _ => None,
    }
}

fn key<'t>(name: &str, at: &Span) -> Key<'t> {
    Spanned::new(at.clone(), Cow::Owned(name.to_owned()))
}

/// Adds the entries that a table lacks.
fn fill<'t>(table: &mut DeTable<'t>, more: DeTable<'t>) {
    for (key, value) in more {
        match (table.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value.get_ref()) {
            (None, _) => {
                table.insert(key, value);
            }
            (Some(DeValue::Table(there)), DeValue::Table(_)) => {
                if let DeValue::Table(inner) = value.into_inner() {
                    fill(there, inner);
                }
            }
            (Some(_), _) => {}
        }
    }
}

/// Returns a value whose every part stands at one place.
fn placed<'t>(value: Value<'t>, at: &Span) -> Value<'t> {
    let value = match value.into_inner() {
        DeValue::Table(table) => DeValue::Table(placed_table(table, at)),
        DeValue::Array(all) => {
            DeValue::Array(all.into_iter().map(|each| placed(each, at)).collect())
        }
        plain => plain,
    };
    Spanned::new(at.clone(), value)
}

fn placed_table<'t>(table: DeTable<'t>, at: &Span) -> DeTable<'t> {
    let entries = table.into_iter();
    let moved = |(key, value): (Key<'t>, Value<'t>)| {
        (Spanned::new(at.clone(), key.into_inner()), placed(value, at))
    };
    entries.map(moved).collect()
}
