//! The parts of the HTTP listener that can change while it runs: its token and its certificate.
//!
//! The config says where both are stored. They are re-read from there regularly, so that a token can be revoked and a
//! certificate renewed without a restart. If a file cannot be used, that is logged, and the previous value stays in
//! use.

use std::net::IpAddr;
use std::path::Path;
use std::time::SystemTime;

use toolcrib_server::access::{Access, AccessControl};
use toolcrib_server::config::TlsFiles;
use toolcrib_server::expand::{expand_secret, from_system};
use toolcrib_server::private_file::{PrivateFileError, read_secret};
use toolcrib_server::{HttpSettings, Secret, ServerTls};

use super::{gateway_failure, state_folder};
use crate::output::Failure;

/// The token and the certificate of a listener.
pub(super) struct Listener {
    ip: IpAddr,
    token: Option<Secret>,
    access: AccessControl,
    certificate: Option<Certificate>,
    /// The problem that was logged last. It is kept so that each problem is logged once.
    problem: Option<String>,
}

struct Certificate {
    files: TlsFiles,
    tls: ServerTls,
    /// Modification times of the certificate file and of the key file when they were last loaded.
    written: [Option<SystemTime>; 2],
}

impl Listener {
    /// Loads the token and the certificate of a listener on `ip`.
    pub(super) fn new(ip: IpAddr, http: &HttpSettings) -> Result<Self, Failure> {
        let access = access(ip, http.token.as_ref())?;
        let certificate = http.tls.clone().map(Certificate::load).transpose()?;
        let token = http.token.clone();
        Ok(Self { ip, token, access: access.into(), certificate, problem: None })
    }

    pub(super) fn access(&self) -> AccessControl {
        self.access.clone()
    }

    pub(super) fn tls(&self) -> Option<ServerTls> {
        self.certificate.as_ref().map(|certificate| certificate.tls.clone())
    }

    /// Applies a changed config. TLS cannot be switched on or off while the listener runs.
    pub(super) fn configure(&mut self, http: &HttpSettings) {
        self.token.clone_from(&http.token);
        if let (Some(certificate), Some(files)) = (&mut self.certificate, &http.tls)
            && certificate.files != *files
        {
            certificate.files = files.clone();
            certificate.written = [None; 2];
        }
    }

    /// Re-reads the token and the certificate.
    pub(super) fn refresh(&mut self) {
        let problem = self.try_refresh().err().map(|failure| {
            let hint = failure.hint();
            format!("{failure} (hint: {hint})")
        });
        if let Some(problem) = problem.as_ref().filter(|new| self.problem.as_ref() != Some(*new)) {
            tracing::error!(
                "the new token or certificate cannot be used; the previous one stays in use: {problem}"
            );
        }
        self.problem = problem;
    }

    fn try_refresh(&mut self) -> Result<(), Failure> {
        if self.access.replace(access(self.ip, self.token.as_ref())?) {
            tracing::info!("the token changed; the previous one is revoked");
        }
        match &mut self.certificate {
            Some(certificate) => certificate.refresh(),
            None => Ok(()),
        }
    }
}

/// Decides what a listener on `ip` requires of clients. `token` is the token in the config, if there is one.
fn access(ip: IpAddr, token: Option<&Secret>) -> Result<Access, Failure> {
    let token = token.map(|token| expand_secret(token, &from_system)).transpose();
    let token = token.map_err(|error| Failure::input("`http.token`", &error, error.hint()))?;
    Access::decide(ip, token, state_folder().as_ref())
        .map_err(|error| gateway_failure(&error, error.hint()))
}

impl Certificate {
    fn load(files: TlsFiles) -> Result<Self, Failure> {
        let written = written(&files);
        let tls = ServerTls::new(server_config(&files)?);
        Ok(Self { files, tls, written })
    }

    fn refresh(&mut self) -> Result<(), Failure> {
        let now = written(&self.files);
        if now == self.written {
            return Ok(());
        }
        // When a certificate is renewed, its two files are written one after the other. Until both are written, the key
        // does not match the certificate. `server_config` then fails, and the next refresh tries again.
        self.tls.replace(server_config(&self.files)?);
        self.written = now;
        tracing::info!("the certificate changed and is in use");
        Ok(())
    }
}

fn written(files: &TlsFiles) -> [Option<SystemTime>; 2] {
    let written = |path: &Path| path.metadata().and_then(|about| about.modified()).ok();
    [written(&files.certificate), written(&files.key)]
}

fn server_config(
    TlsFiles { certificate, key }: &TlsFiles,
) -> Result<std::sync::Arc<toolcrib_tls::ServerConfig>, Failure> {
    let chain = std::fs::read(certificate).map_err(|error| {
        let hint = "`http.tls.certificate` must name a PEM file that can be read";
        Failure::input(certificate.display().to_string(), &error, hint)
    })?;
    let place = key.display().to_string();
    let secret = read_secret(key).map_err(|error| {
        let hint = match error {
            PrivateFileError::ReadableByOthers { .. } => format!("run `chmod 600 {place}`"),
            _ => "`http.tls.key` must name a PEM file that can be read".to_owned(),
        };
        Failure::input("`http.tls.key`", &error, hint)
    })?;
    toolcrib_tls::server_config(&chain, &secret).map_err(|error| {
        let place = format!("`{}` and `{place}`", certificate.display());
        Failure::input(place, &error, error.hint())
    })
}
