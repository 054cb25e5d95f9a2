//! The paths in a Rust file that begin with `crate`, `super` or `self`, as paths from the crate's root.
//!
//! Code that is compiled only for tests is excluded. The arguments of a macro may not be Rust syntax, so paths in them
//! are found by reading the tokens.

use syn::buffer::{Cursor, TokenBuffer};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItem, Item, Meta, Token, UseTree};

/// A collector of the paths in the items of a module.
pub(super) struct Paths {
    /// The path of the current module from the crate's root.
    module: Vec<String>,
    found: Vec<Vec<String>>,
}

impl Paths {
    pub(super) fn in_items<'a>(
        module: &[String],
        items: impl IntoIterator<Item = &'a Item>,
    ) -> Vec<Vec<String>> {
        let mut paths = Self { module: module.to_vec(), found: Vec::new() };
        items.into_iter().for_each(|item| paths.visit_item(item));
        paths.found
    }

    fn add(&mut self, path: &[String]) {
        let mut from_root = self.module.clone();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => {
                from_root.clear();
                rest = &path[1..];
            }
            Some("self") => rest = &path[1..],
            Some("super") => {
                while rest.first().is_some_and(|name| name == "super") {
                    from_root.pop();
                    rest = &rest[1..];
                }
            }
            // A path that begins with a plain name can refer to a module of the crate only in the root.
            _ if from_root.is_empty() => {}
            _ => return,
        }
        from_root.extend_from_slice(rest);
        self.found.push(from_root);
    }

    fn add_tokens(&mut self, mut cursor: Cursor<'_>) {
        while !cursor.eof() {
            if let Some((name, next)) = cursor.ident()
                && (name == "crate" || name == "super")
            {
                cursor = self.add_path(vec![name.to_string()], next);
            } else if let Some((inside, _, _, next)) = cursor.any_group() {
                self.add_tokens(inside);
                cursor = next;
            } else if let Some((_, next)) = cursor.token_tree() {
                cursor = next;
            }
        }
    }

    /// Adds the path that begins with `path` and continues at the cursor. Returns the position after the path.
    fn add_path<'t>(&mut self, mut path: Vec<String>, mut cursor: Cursor<'t>) -> Cursor<'t> {
        while let Some(next) = after_colons(cursor) {
            if let Some((name, next)) = next.ident() {
                path.push(name.to_string());
                cursor = next;
            } else if let Some((mut inside, _, _, next)) = next.any_group() {
                while let Some((name, next)) = inside.ident() {
                    let part = path.iter().cloned().chain([name.to_string()]).collect();
                    inside = after_comma(self.add_path(part, next));
                }
                return next;
            } else {
                break;
            }
        }
        self.add(&path);
        cursor
    }
}

fn after_colons(cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let (first, next) = cursor.punct()?;
    let (second, next) = next.punct()?;
    (first.as_char() == ':' && second.as_char() == ':').then_some(next)
}

fn after_comma(mut cursor: Cursor<'_>) -> Cursor<'_> {
    while let Some((_, next)) = cursor.token_tree() {
        let is_comma = cursor.punct().is_some_and(|(punct, _)| punct.as_char() == ',');
        cursor = next;
        if is_comma {
            break;
        }
    }
    cursor
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_for_tests(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        let attributes = match item {
            ImplItem::Const(item) => &item.attrs[..],
            ImplItem::Fn(item) => &item.attrs,
            _ => &[],
        };
        if !attributes.iter().any(wants_tests) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        for (path, _) in imports(&item.tree) {
            self.add(&path);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Vec<String> =
            path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(&names);
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, mac: &'ast syn::Macro) {
        self.visit_path(&mac.path);
        self.add_tokens(TokenBuffer::new2(mac.tokens.clone()).begin());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.add_tokens(TokenBuffer::new2(list.tokens.clone()).begin());
        }
    }
}

/// Returns the paths that a `use` imports, each with the name that it has in this module.
pub(super) fn imports(tree: &UseTree) -> Vec<(Vec<String>, String)> {
    let one = |name: &str, here: &str| vec![(vec![name.to_owned()], here.to_owned())];
    match tree {
        UseTree::Path(path) => {
            let mut imports = imports(&path.tree);
            for (names, here) in &mut imports {
                if here == "self" {
                    *here = path.ident.to_string();
                }
                names.insert(0, path.ident.to_string());
            }
            imports
        }
        UseTree::Name(name) => one(&name.ident.to_string(), &name.ident.to_string()),
        UseTree::Rename(name) => one(&name.ident.to_string(), &name.rename.to_string()),
        UseTree::Glob(_) => one("*", "*"),
        UseTree::Group(group) => group.items.iter().flat_map(imports).collect(),
    }
}

/// Whether an item is compiled for tests only.
pub(super) fn is_for_tests(item: &Item) -> bool {
    let attributes = match item {
        Item::Const(item) => &item.attrs[..],
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    };
    attributes.iter().any(wants_tests)
}

/// Whether an attribute is `#[cfg(test)]` or `#[cfg(doctest)]`, possibly combined with other conditions.
fn wants_tests(attribute: &Attribute) -> bool {
    fn is_test(condition: &Meta) -> bool {
        match condition {
            Meta::Path(path) => path.is_ident("test") || path.is_ident("doctest"),
            Meta::List(list) if list.path.is_ident("all") => {
                let all = Punctuated::<Meta, Token![,]>::parse_terminated;
                list.parse_args_with(all).is_ok_and(|all| all.iter().any(is_test))
            }
            _ => false,
        }
    }
    attribute.path().is_ident("cfg")
        && attribute.parse_args().is_ok_and(|condition: Meta| is_test(&condition))
}
