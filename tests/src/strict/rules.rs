//! What the rules of both wires are made of: fields, types, names, schemas. It knows neither wire.

use serde_json::{Map, Value};

/// A request that is answered with an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// HTTP status.
    pub status: u16,
    /// What is wrong, in the vendor's manner.
    pub message: String,
}

impl Refused {
    /// A status of 400.
    pub fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }
}

/// The outcome of a rule.
pub type Verdict<T = ()> = Result<T, Refused>;

/// Refuses with `message` unless `good`.
pub fn need(good: bool, message: impl FnOnce() -> String) -> Verdict {
    if good { Ok(()) } else { Err(Refused::bad(message())) }
}

/// `value` as an object that has no fields but `known`.
pub fn object<'a>(at: &str, value: &'a Value, known: &[&str]) -> Verdict<&'a Map<String, Value>> {
    let map = value.as_object().ok_or_else(|| Refused::bad(format!("{at}: Input should be an object")))?;
    for field in map.keys() {
        need(known.contains(&field.as_str()), || format!("{}: Extra inputs are not permitted", join(at, field)))?;
    }
    Ok(map)
}

/// `value` as a list that is not empty.
pub fn list<'a>(at: &str, value: Option<&'a Value>) -> Verdict<&'a [Value]> {
    match value.and_then(Value::as_array) {
        Some(items) if !items.is_empty() => Ok(items),
        _ => Err(Refused::bad(format!("{at}: Input should be a list that is not empty"))),
    }
}

/// `value` as words that are not only white space.
pub fn words<'a>(at: &str, value: Option<&'a Value>) -> Verdict<&'a str> {
    match value.and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text),
        Some(_) => Err(Refused::bad(format!("{at}: text content blocks must contain non-whitespace text"))),
        None => Err(Refused::bad(format!("{at}: Field required, a string"))),
    }
}

/// `value` as a name of letters, digits, `_` and `-`, as both vendors want tools named.
pub fn name<'a>(at: &str, value: Option<&'a Value>, longest: usize) -> Verdict<&'a str> {
    let name = words(at, value)?;
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    need(name.len() <= longest && name.chars().all(fits), || {
        format!("{at}: String should match pattern '^[a-zA-Z0-9_-]{{1,{longest}}}$'")
    })?;
    Ok(name)
}

/// `value` as a schema of arguments: an object schema whose properties are schemas and whose required ones exist.
pub fn schema(at: &str, value: Option<&Value>) -> Verdict {
    let schema = value.and_then(Value::as_object).ok_or_else(|| Refused::bad(format!("{at}: Field required")))?;
    need(schema.get("type") == Some(&Value::from("object")), || format!("{at}.type: Input should be 'object'"))?;
    let properties = schema.get("properties");
    need(properties.is_none_or(Value::is_object), || format!("{at}.properties: Input should be an object"))?;
    for (key, property) in properties.and_then(Value::as_object).into_iter().flatten() {
        need(property.is_object() || property.is_boolean(), || format!("{at}.properties.{key}: is no schema"))?;
    }
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let known = required.as_str().is_some_and(|key| properties.is_some_and(|map| map.get(key).is_some()));
        need(known, || format!("{at}.required: {required} is not among the properties"))?;
    }
    Ok(())
}

/// A limit of the answer.
pub fn at_least_one(at: &str, value: Option<&Value>) -> Verdict {
    need(value.and_then(Value::as_u64).is_some_and(|limit| limit >= 1), || {
        format!("{at}: Input should be greater than or equal to 1")
    })
}

fn join(at: &str, field: &str) -> String {
    if at.is_empty() { field.to_owned() } else { format!("{at}.{field}") }
}
