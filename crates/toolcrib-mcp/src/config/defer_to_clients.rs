//! The setting `defer_to_clients`: which clients with a tool search of their own get the full tool list.

use serde::Deserialize;
use serde::de::Error as _;

/// Which of the clients that search tools on their own get the full tool list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeferToClients {
    /// The clients for which the full list was better when it was measured. Written as `"auto"`.
    #[default]
    Auto,
    /// All of these clients that the gateway knows. Written as `true`.
    All,
    /// No client. Written as `false`.
    Never,
}

impl<'de> Deserialize<'de> for DeferToClients {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "expected \"auto\", true or false")]
        enum Written {
            Switch(bool),
            Text(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Switch(true) => Ok(Self::All),
            Written::Switch(false) => Ok(Self::Never),
            Written::Text(text) if text == "auto" => Ok(Self::Auto),
            Written::Text(_) => Err(D::Error::custom("expected \"auto\", true or false")),
        }
    }
}

/// The schema of what [`DeferToClients::deserialize`] accepts.
#[cfg(feature = "schema")]
impl schemars::JsonSchema for DeferToClients {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "DeferToClients".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["auto", true, false] })
    }
}

#[cfg(test)]
mod tests {
    use super::DeferToClients;
    use crate::GatewayConfig;

    #[test]
    fn the_setting_is_a_switch_or_auto() {
        let cases = [
            ("", DeferToClients::Auto),
            ("defer_to_clients = \"auto\"", DeferToClients::Auto),
            ("defer_to_clients = true", DeferToClients::All),
            ("defer_to_clients = false", DeferToClients::Never),
        ];
        for (line, expected) in cases {
            let config = GatewayConfig::from_toml(&format!("[gateway]\n{line}")).unwrap();
            assert_eq!(config.gateway.defer_to_clients, expected, "{line}");
        }
        for line in ["defer_to_clients = \"always\"", "defer_to_clients = 1"] {
            let error = GatewayConfig::from_toml(&format!("[gateway]\n{line}")).unwrap_err();
            assert!(error.to_string().contains("expected \"auto\", true or false"), "{error}");
        }
    }
}
