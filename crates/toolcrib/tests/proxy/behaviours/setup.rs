//! The configuration of a proxy (a config file and flags), and the model and headers of its clients' requests.

#[derive(Clone)]
pub(super) struct Setup {
    pub(super) file: &'static str,
    /// The contents of the file. `URL` is replaced by the URL of the provider.
    pub(super) text: String,
    pub(super) flags: Vec<&'static str>,
    pub(super) model: &'static str,
    pub(super) headers: &'static str,
    /// Whether requests are sent to the providers' own host names. The scripted provider then answers for these hosts.
    pub(super) real_hosts: bool,
}

impl Setup {
    /// Uses a `toolcrib.toml` with this preset, followed by these settings.
    pub(super) fn preset(preset: &str, settings: &str) -> Self {
        Self::file("toolcrib.toml", format!("preset = '{preset}'\n{settings}"))
    }

    /// Uses a config file with this name and text.
    pub(super) fn file(file: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { file, text, flags: Vec::new(), model: "gpt-5.2", headers: "", real_hosts: false }
    }

    pub(super) fn flags(mut self, flags: &[&'static str]) -> Self {
        self.flags.extend(flags);
        self
    }

    /// Sends requests to the providers' own host names.
    pub(super) fn real_hosts(mut self) -> Self {
        self.real_hosts = true;
        self
    }

    pub(super) fn model(mut self, model: &'static str) -> Self {
        self.model = model;
        self
    }

    /// Sets the additional header of the requests.
    pub(super) fn header(mut self, header: &'static str) -> Self {
        self.headers = header;
        self
    }
}
