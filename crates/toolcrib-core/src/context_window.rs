//! Context windows by model name.
//!
//! If activation depends on a share of the context window, the window's size must be known, but most requests contain
//! only the model's name. The table has models with a hosted API. Models that users host themselves are left out,
//! because their window depends on how the server was started. A window that is set by a caller, a file or a client
//! takes precedence over the table.

/// Model names and their context windows in tokens, as of November 2026, checked against the list of models in litellm
/// 1.108.4. Entries are prefixes of names, and the longest matching prefix is used. Dots are written as hyphens,
/// because some APIs spell `claude-opus-4-6` as `claude-opus-4.6`.
const WINDOWS: [(&str, usize); 62] = [
    ("claude", 200_000),
    ("claude-fable-5", 1_000_000),
    ("claude-haiku-5", 1_000_000),
    ("claude-mythos", 1_000_000),
    ("claude-opus-4-6", 1_000_000),
    ("claude-opus-4-7", 1_000_000),
    ("claude-opus-4-8", 1_000_000),
    ("claude-opus-5", 1_000_000),
    ("claude-sonnet-4-6", 1_000_000),
    ("claude-sonnet-5", 1_000_000),
    ("command-a", 256_000),
    ("command-a-plus", 128_000),
    ("command-r", 128_000),
    ("deepseek-chat", 131_072),
    ("deepseek-reasoner", 131_072),
    ("deepseek-v4", 1_000_000),
    ("gemini", 1_048_576),
    ("gemini-1-5-pro", 2_097_152),
    ("gemini-2-5-computer-use", 128_000),
    ("glm-4-5", 131_072),
    ("glm-4-6", 200_000),
    ("glm-4-7", 200_000),
    ("glm-5", 200_000),
    ("glm-5-2", 1_000_000),
    ("glm-5-3", 1_000_000),
    ("gpt-3-5-turbo", 16_385),
    ("gpt-4", 8_192),
    ("gpt-4-0125", 128_000),
    ("gpt-4-1", 1_047_576),
    ("gpt-4-1106", 128_000),
    ("gpt-4-32k", 32_768),
    ("gpt-4-5", 128_000),
    ("gpt-4-turbo", 128_000),
    ("gpt-4o", 128_000),
    ("gpt-5", 400_000),
    ("gpt-5-1-chat", 128_000),
    ("gpt-5-2-chat", 128_000),
    ("gpt-5-3-chat", 128_000),
    ("gpt-5-4", 1_050_000),
    ("gpt-5-4-mini", 400_000),
    ("gpt-5-4-nano", 400_000),
    ("gpt-5-5", 1_050_000),
    ("gpt-5-6", 1_050_000),
    ("gpt-5-6-cyber", 400_000),
    ("gpt-5-chat", 128_000),
    ("gpt-6", 1_050_000),
    ("grok-3", 131_072),
    ("grok-4", 256_000),
    ("grok-4-20", 1_000_000),
    ("grok-4-3", 1_000_000),
    ("grok-4-5", 500_000),
    ("grok-4-6", 500_000),
    ("grok-4-7", 500_000),
    ("grok-code-fast", 256_000),
    ("kimi-k2", 131_072),
    ("kimi-k2-5", 262_144),
    ("kimi-k2-6", 262_144),
    ("kimi-k2-7", 262_144),
    ("kimi-k2-thinking", 262_144),
    ("o1", 200_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
];

/// The suffix of the model name with which Claude Code requests a window of a million tokens.
const MILLION_TOKENS_SUFFIX: &str = "[1m]";

/// The context window of a model in tokens, if known.
///
/// ```
/// use toolcrib_core::context_window;
/// assert_eq!(context_window::of_model("claude-sonnet-4-5-20250929"), Some(200_000));
/// assert_eq!(context_window::of_model("us.anthropic.claude-opus-4-6-v1:0"), Some(1_000_000));
/// assert_eq!(context_window::of_model("openai/gpt-4.1-mini"), Some(1_047_576));
/// assert_eq!(context_window::of_model("my-own-model"), None);
/// ```
pub fn of_model(model: &str) -> Option<usize> {
    let model = model.to_ascii_lowercase();
    if model.ends_with(MILLION_TOKENS_SUFFIX) {
        return Some(1_000_000);
    }
    // Gateways put a provider or region before the model's name, such as `openai/`, `us.anthropic.` or `models/`.
    let model = model.rsplit('/').next().unwrap_or_default();
    let starts = model.match_indices(['.', ':']).map(|(at, _)| at + 1);
    std::iter::once(0).chain(starts).find_map(|start| {
        let name = model[start..].replace('.', "-");
        let fits = |(entry, _): &&(&str, usize)| {
            // A prefix must end at a word boundary: `gpt-4-1` does not match `gpt-4-1106-preview`, and `o1` does not
            // match `o1x`.
            let rest = name.strip_prefix(*entry);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        WINDOWS.iter().filter(fits).max_by_key(|(entry, _)| entry.len()).map(|(_, size)| *size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_entry_that_ends_at_a_word_boundary_counts() {
        for (model, window) in [
            ("claude-3-5-haiku-latest", Some(200_000)),
            ("claude-haiku-4-5", Some(200_000)),
            ("claude-opus-4.6", Some(1_000_000)),
            ("claude-sonnet-4-5[1m]", Some(1_000_000)),
            ("gpt-4", Some(8_192)),
            ("gpt-4-1106-preview", Some(128_000)),
            ("gpt-4o-mini", Some(128_000)),
            ("gpt-5.3-chat-latest", Some(128_000)),
            ("gpt-5-mini", Some(400_000)),
            ("gpt-5.4-mini", Some(400_000)),
            ("models/gemini-2.5-pro", Some(1_048_576)),
            ("o3-mini", Some(200_000)),
            ("o30", None),
            ("gemini/gemma-3-27b-it", None),
            ("bedrock/claude_platform/claude-opus-4-6", Some(1_000_000)),
            ("qwen3-coder", None),
            ("", None),
        ] {
            assert_eq!(of_model(model), window, "{model}");
        }
    }
}
