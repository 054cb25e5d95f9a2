//! How a proxy is configured: a file, flags, and what its clients send.

/// A configuration of the proxy.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) file: &'static str,
    /// `URL` in it is the provider's.
    pub(super) text: String,
    pub(super) flags: Vec<&'static str>,
    pub(super) model: &'static str,
    pub(super) headers: &'static str,
    /// Whether requests go to the providers' own host names, for which the scripted provider stands in.
    pub(super) real_hosts: bool,
}

impl Setup {
    /// A `toolcrib.toml` with this preset, and these settings over it.
    pub(super) fn preset(preset: &str, settings: &str) -> Self {
        Self::file("toolcrib.toml", format!("preset = '{preset}'\n{settings}"))
    }

    /// A file of this name.
    pub(super) fn file(file: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { file, text, flags: Vec::new(), model: "gpt-5.2", headers: "", real_hosts: false }
    }

    /// The same with these flags.
    pub(super) fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    /// The same in front of the providers' own hosts.
    pub(super) fn real_hosts(mut self) -> Self {
        self.real_hosts = true;
        self
    }

    /// The same for requests to another model.
    pub(super) fn model(mut self, model: &'static str) -> Self {
        self.model = model;
        self
    }

    /// The same for requests with another header.
    pub(super) fn header(mut self, header: &'static str) -> Self {
        self.headers = header;
        self
    }
}
