//! Edits TOML with `toml_edit`, which keeps comments and formatting.
//!
//! `toml_edit` writes every line ending as `\n`, so the original line endings are restored afterwards.

use serde_json::Value;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Key, Table, TableLike};

use crate::edit::{Edit, Place};
use crate::lines::{restore_line_endings, with_lf};
use crate::problem::FileProblem;
use crate::tree;

const HINT: &str = "the file must be TOML";

/// Parses a text. A date becomes an object that is not equal to any value of another type.
pub(crate) fn parse(text: &str) -> Result<Value, FileProblem> {
    toml::from_str(text).map_err(|error| not_toml(text, error.message(), error.span()))
}

fn not_toml(text: &str, message: &str, span: Option<std::ops::Range<usize>>) -> FileProblem {
    let before = span.and_then(|span| text.get(..span.start)).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    // The parser's message does not quote the text.
    let message = message.lines().next().unwrap_or_default();
    FileProblem::new(format!("{message} at line {line}"), HINT)
}

fn read(text: &str) -> Result<DocumentMut, FileProblem> {
    let text = with_lf(text);
    text.parse()
        .map_err(|error: toml_edit::TomlError| not_toml(&text, error.message(), error.span()))
}

pub(crate) fn edit(text: &str, edit: &Edit<'_>) -> Result<String, FileProblem> {
    let mut document = read(text)?;
    let Some((last, parents)) = edit.path().split_last() else { return Ok(text.to_owned()) };
    match edit {
        Edit::Remove { keep_comments, .. } => {
            let item = find(document.as_table_mut(), parents).and_then(|table| table.remove(last));
            if let Some(Item::Table(table)) = item.filter(|_| *keep_comments) {
                keep_comments_of(&mut document, &table);
            }
            show_if_empty(document.as_table_mut(), parents);
        }
        Edit::Set { value, place, .. } => {
            let item = item(value)?;
            insert(&mut document, parents, &Key::new(last), item, place)?;
        }
        Edit::Copy { from, place, .. } => {
            let mut source = read(from)?;
            let (key, mut item) = copied(source.as_table_mut(), parents, last)?;
            clear_positions(&mut item);
            insert(&mut document, parents, &key, item, place)?;
        }
    }
    let edited = document.to_string();
    // A new table begins with an empty line, which is not needed at the beginning of the file.
    let edited =
        if text.starts_with(['\n', '\r']) { &edited } else { edited.trim_start_matches('\n') };
    Ok(restore_line_endings(text, edited))
}

fn find<'a>(root: &'a mut Table, path: &[String]) -> Option<&'a mut dyn TableLike> {
    let root: &mut dyn TableLike = root;
    path.iter().try_fold(root, |table, key| table.get_mut(key)?.as_table_like_mut())
}

/// Writes the header of a table that has become empty. Without it, the table would no longer exist.
fn show_if_empty(root: &mut Table, path: &[String]) {
    let Some((last, parents)) = path.split_last() else { return };
    let table = find(root, parents).and_then(|table| table.get_mut(last)?.as_table_mut());
    if let Some(table) = table.filter(|table| table.is_empty()) {
        table.set_implicit(false);
        table.set_dotted(false);
    }
}

/// Moves the comments above a removed table to the next table, or to the end of the document.
fn keep_comments_of(document: &mut DocumentMut, removed: &Table) {
    let comments = removed.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
    if !comments.contains('#') {
        return;
    }
    let after = removed.position();
    if let Some(next) = next_table(document.as_table_mut(), after) {
        let prefix = next.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
        let prefix = format!("{comments}{prefix}");
        next.decor_mut().set_prefix(prefix);
        return;
    }
    let trailing = document.trailing().as_str().unwrap_or_default();
    let trailing = format!("{comments}{trailing}");
    document.set_trailing(trailing);
}

/// Returns the table with the smallest position after this one.
fn next_table(table: &mut Table, after: Option<isize>) -> Option<&mut Table> {
    let is_next =
        |table: &Table| table.position() > after && !table.is_implicit() && !table.is_dotted();
    let mut best: Option<&mut Table> = None;
    for (_, item) in table.iter_mut() {
        let Some(inner) = item.as_table_mut() else { continue };
        let found = if is_next(inner) { Some(inner) } else { next_table(inner, after) };
        let Some(found) = found else { continue };
        if best.as_ref().is_none_or(|best| found.position() < best.position()) {
            best = Some(found);
        }
    }
    best
}

fn copied(root: &mut Table, parents: &[String], key: &str) -> Result<(Key, Item), FileProblem> {
    let missing = || FileProblem::unsupported(format!("`{key}` is missing"));
    let table = find(root, parents).ok_or_else(missing)?;
    let name = table.key(key).cloned().ok_or_else(missing)?;
    Ok((name, table.get(key).cloned().ok_or_else(missing)?))
}

/// Removes the positions that the tables had in another document, so that `toml_edit` writes them after the previous
/// tables of this document.
fn clear_positions(item: &mut Item) {
    match item {
        Item::Table(table) => {
            table.set_position(None);
            table.iter_mut().for_each(|(_, item)| clear_positions(item));
        }
        Item::ArrayOfTables(tables) => {
            for table in tables.iter_mut() {
                table.set_position(None);
                table.iter_mut().for_each(|(_, item)| clear_positions(item));
            }
        }
        Item::None | Item::Value(_) => {}
    }
}

fn insert(
    document: &mut DocumentMut,
    parents: &[String],
    key: &Key,
    mut item: Item,
    place: &Place,
) -> Result<(), FileProblem> {
    let is_empty = document.as_table().is_empty();
    let mut table: &mut dyn TableLike = document.as_table_mut();
    let mut is_inline = false;
    for parent in parents {
        let next = table.entry(parent).or_insert_with(|| {
            let mut new = Table::new();
            // The header of a table that contains only tables is not needed.
            new.set_implicit(true);
            Item::Table(new)
        });
        is_inline = next.is_value();
        table = next.as_table_like_mut().ok_or_else(|| tree::not_an_object(parent))?;
    }
    if let Some(old) = table.get_mut(key.get()) {
        // The new value gets the comments and the place of the old one.
        if let (Some(old), Some(new)) = (old.as_value(), item.as_value_mut()) {
            *new.decor_mut() = old.decor().clone();
        }
        if let (Some(old), Some(new)) = (old.as_table(), item.as_table_mut()) {
            *new.decor_mut() = old.decor().clone();
            new.set_position(old.position());
        }
        *old = item;
        return Ok(());
    }
    if is_inline || parents.is_empty() && !item.is_table() {
        item = item.into_value().map_or_else(|item| item, Item::Value);
    }
    if let Some(new) = item.as_table_mut() {
        let neighbour = match place {
            Place::Before(key) | Place::After(key) => table.get(key).and_then(Item::as_table),
            Place::First | Place::Last => None,
        };
        match (place, neighbour) {
            (Place::Before(_), Some(next)) => new.set_position(next.position()),
            (Place::After(_), Some(previous)) => new.set_position(last_position(previous)),
            _ => {}
        }
        if !is_empty && new.decor().prefix().is_none() {
            new.decor_mut().set_prefix("\n");
        }
    }
    table.entry_format(key).or_insert(item);
    Ok(())
}

/// Returns the greatest position of a table and the tables in it.
fn last_position(table: &Table) -> Option<isize> {
    let inner = table.iter().filter_map(|(_, item)| item.as_table().and_then(last_position));
    inner.chain(table.position()).max()
}

/// Converts a value. An object becomes a table, and the objects in it become inline tables.
fn item(value: &Value) -> Result<Item, FileProblem> {
    let Value::Object(map) = value else { return Ok(Item::Value(scalar(value)?)) };
    let mut table = Table::new();
    for (key, value) in map {
        table.insert(key, Item::Value(scalar(value)?));
    }
    Ok(Item::Table(table))
}

fn scalar(value: &Value) -> Result<toml_edit::Value, FileProblem> {
    Ok(match value {
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => number.into(),
            (None, Some(number)) => number.into(),
            _ => return Err(FileProblem::unsupported("a number is too large for TOML")),
        },
        Value::Array(list) => {
            let values: Result<Array, FileProblem> = list.iter().map(scalar).collect();
            toml_edit::Value::Array(values?)
        }
        Value::Object(map) => {
            let mut table = InlineTable::new();
            for (key, value) in map {
                table.insert(key, scalar(value)?);
            }
            toml_edit::Value::InlineTable(table)
        }
        Value::Null => return Err(FileProblem::unsupported("TOML has no null")),
    })
}
