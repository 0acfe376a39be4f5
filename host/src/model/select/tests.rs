//! Names, addresses, keys and the order of the rules.

use super::*;

fn endpoints(variables: &[(&str, &str)]) -> Endpoints {
    let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Endpoints::from_env(&find)
}

fn error(name: &str, endpoints: &Endpoints) -> String {
    match open(name, endpoints) {
        Ok(model) => panic!("{} opened", model.name()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_missing_key_names_its_variable() {
    let none = endpoints(&[("OPENAI_API_KEY", " "), ("OPENAI_BASE_URL", "")]);
    assert_eq!(
        error("anthropic:claude", &none),
        "anthropic:claude needs a key; set ANTHROPIC_API_KEY, or name another model"
    );
    assert_eq!(error("openai:gpt", &none), "openai:gpt needs a key; set OPENAI_API_KEY, or name another model");
    let official = endpoints(&[("OPENAI_BASE_URL", "https://api.openai.com/")]);
    assert!(error("openai:gpt", &official).contains("OPENAI_API_KEY"));
    let local = endpoints(&[("OPENAI_BASE_URL", "http://localhost:11434/v1")]);
    assert_eq!(open("openai:qwen3:8b", &local).unwrap().name(), "openai:qwen3:8b");
}

#[test]
fn a_name_that_names_nothing_lists_the_forms() {
    let none = endpoints(&[]);
    for name in ["gpt-5", "gemini:pro", "openai:", ""] {
        let error = error(name, &none);
        assert!(error.contains("anthropic:NAME, openai:NAME") && error.contains("scripted:FILE"), "{error}");
    }
    assert!(error("scripted:/nowhere.yaml", &none).starts_with("cannot read the script /nowhere.yaml"));
}

#[test]
fn addresses_are_put_right() {
    for text in ["https://a.example", "https://a.example/", "https://a.example/v1", "https://a.example/v1/messages"] {
        assert_eq!(anthropic_base(text).unwrap(), "https://a.example", "{text}");
    }
    assert_eq!(anthropic_base("https://a.example/anthropic/").unwrap(), "https://a.example/anthropic");
    for (text, base) in [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1//", "http://localhost:11434/v1"),
        ("https://openrouter.ai/api/v1/chat/completions", "https://openrouter.ai/api/v1"),
        ("https://a.example/v1beta/openai", "https://a.example/v1beta/openai"),
        (" https://api.openai.com ", OPENAI_BASE),
    ] {
        assert_eq!(openai_base(text).unwrap(), base, "{text}");
    }
}

#[test]
fn an_address_that_is_refused_is_not_repeated() {
    for text in [
        "http://user:hunter22@host/v1",
        "http://host/v1?key=hunter22",
        "hunter22",
        "ftp://hunter22/",
        "http://h/#hunter22",
    ] {
        let error = openai_base(text).unwrap_err().to_string();
        assert!(error.starts_with("OPENAI_BASE_URL ") && !error.contains("hunter22"), "{error}");
    }
}

#[test]
fn keys_do_not_show_in_debug() {
    let endpoints = endpoints(&[("ANTHROPIC_API_KEY", "sk-hunter22"), ("OPENAI_API_KEY", "sk-hunter22")]);
    assert!(!format!("{endpoints:?}").contains("hunter"));
}

#[test]
fn the_first_rule_that_knows_a_model_chooses() {
    let both = endpoints(&[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "b")]);
    let openai = endpoints(&[("OPENAI_API_KEY", "b")]);
    let none = endpoints(&[("OPENAI_BASE_URL", "http://localhost:11434/v1")]);
    let chosen = |explicit, environment, config, endpoints| {
        let Choice { name, rule } = choose(explicit, environment, config, endpoints);
        (name.unwrap_or_default(), rule)
    };
    let is = |name: &str, rule| (name.to_owned(), rule);
    assert_eq!(chosen(Some("x:1"), Some("x:2"), Some("x:3"), &both), is("x:1", Rule::Explicit));
    assert_eq!(chosen(Some(" "), Some("x:2"), Some("x:3"), &both), is("x:2", Rule::Environment));
    assert_eq!(chosen(None, Some(""), Some("x:3"), &both), is("x:3", Rule::Config));
    assert_eq!(chosen(None, None, None, &both), is("anthropic:claude-sonnet-4-5", Rule::AnthropicKey));
    assert_eq!(chosen(None, None, None, &openai), is("openai:gpt-5", Rule::OpenAiKey));
    assert_eq!(chosen(None, None, None, &none), is("", Rule::Demo));
}
