//! Which arguments of a call are paths. Pure.

use serde_json::Value;

/// Names of arguments that hold a path, or a list of them.
const NAMES: [&str; 9] = ["path", "paths", "file", "files", "cwd", "dir", "folder", "filename", "directory"];
/// Ends of names that do: `file_path`, `output_dir`.
const ENDS: [&str; 5] = ["_path", "_paths", "_file", "_dir", "_folder"];

/// The texts of all path-like arguments, at any depth, in the order of the input.
pub(crate) fn paths(input: &Value) -> Vec<&str> {
    let mut found = Vec::new();
    collect(input, false, &mut found);
    found
}

fn collect<'a>(value: &'a Value, is_path: bool, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) if is_path => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, is_path, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect(value, names_path(name), found)),
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => {}
    }
}

fn names_path(name: &str) -> bool {
    let name = name.to_lowercase();
    NAMES.contains(&name.as_str()) || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn paths_are_found_by_name_at_any_depth() {
        let input = json!({
            "path": "a",
            "content": "b",
            "deep": [{ "Paths": ["c", ["d"], { "note": "e", "output_dir": "f" }] }],
            "cwd": 5,
            "pathology": "g",
        });
        let mut found = super::paths(&input);
        found.sort_unstable();
        assert_eq!(found, ["a", "c", "d", "f"]);
    }
}
