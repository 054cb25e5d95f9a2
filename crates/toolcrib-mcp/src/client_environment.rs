//! The environment of a client: its variables and its working folder.
//!
//! References in the config, such as `${NAME}` and `${workspaceFolder}`, are resolved in the environment of the client
//! that uses the server. A gateway that serves one client uses the environment of its own process. A background gateway
//! serves many clients, and each of them sends its environment when it connects.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toolcrib_server::expand::{Reference, ReferenceError, look_up};

use crate::config::{ConfigError, Server, ToolDefault, Transport};
use crate::os_text;
use crate::process;

/// Inherited variables that describe the client's terminal, not the work of a server. Two clients whose environments
/// differ only in these can use the same process.
const TERMINAL_VARIABLES: [&str; 2] = ["TERM", "SHELL"];

/// The environment of a client.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientEnvironment {
    #[serde(with = "os_text::pairs")]
    variables: Vec<(OsString, OsString)>,
    #[serde(with = "os_text::option")]
    folder: Option<PathBuf>,
}

/// Shows no variables, because they may contain secrets.
impl std::fmt::Debug for ClientEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientEnvironment").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl ClientEnvironment {
    /// Creates an environment from its variables and its working folder.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        folder: Option<PathBuf>,
    ) -> Self {
        let mut variables: Vec<_> = variables.into_iter().collect();
        variables.sort();
        Self { variables, folder }
    }

    /// Returns the environment of this process.
    pub fn of_this_process() -> Self {
        Self::new(std::env::vars_os(), std::env::current_dir().ok())
    }

    /// Returns the working folder.
    pub fn folder(&self) -> Option<&PathBuf> {
        self.folder.as_ref()
    }

    fn variable(&self, name: &str) -> Option<&OsStr> {
        let found = self.variables.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_os_str())
    }

    fn look_up(&self, source: Reference<'_>) -> Option<String> {
        let variable = |name: &str| Some(self.variable(name)?.to_str()?.to_owned());
        look_up(source, &variable, &|| Some(self.folder.as_ref()?.to_str()?.to_owned()))
    }

    /// Expands the references in a server's config, and sets the folder that the server starts in.
    ///
    /// If the config has no `cwd`, the server starts in the home folder. It does not start in the working folder, which
    /// may belong to anybody: a repository could contain the `server.py` or the `node_modules` that the arguments refer
    /// to. But a server whose config refers to the working folder is meant to use it, and starts there.
    pub(crate) fn expand(&self, name: &str, server: &Server) -> Result<Server, ConfigError> {
        let uses_folder = Cell::new(false);
        let look_up = |source: Reference<'_>| {
            if source == Reference::Folder {
                uses_folder.set(true);
            }
            self.look_up(source)
        };
        let mut server = server.expanded(name, &look_up)?;
        if let Transport::Stdio { command, cwd, .. } = &mut server.transport
            && cwd.is_none()
        {
            // A relative command needs a `cwd` from the config. If there is none, `cwd` stays empty, and the launch
            // fails.
            let is_relative = command.contains('/') && !command.starts_with('/');
            *cwd = match uses_folder.get() {
                _ if is_relative => None,
                true => self.folder.clone(),
                false => Some(self.home_or_root()),
            };
        }
        Ok(server)
    }

    /// Expands only the references. Returns `None` if a reference has no value.
    pub(crate) fn expand_references(&self, name: &str, server: &Server) -> Option<Server> {
        server.expanded(name, &|source: Reference<'_>| self.look_up(source)).ok()
    }

    /// Expands the references in the default of a tool's parameter.
    pub(crate) fn expand_default(
        &self,
        default: &ToolDefault,
    ) -> Result<ToolDefault, ReferenceError> {
        default.expanded(&|source: Reference<'_>| self.look_up(source))
    }

    /// Returns the home folder, or the root folder if there is no home folder.
    fn home_or_root(&self) -> PathBuf {
        let home = self.variable("HOME").map(PathBuf::from);
        let home = home.filter(|home| home.is_absolute() && home.is_dir());
        home.unwrap_or_else(|| PathBuf::from("/"))
    }

    /// Returns the environment variables of a server process. `configured` are those in the server's `env`.
    pub(crate) fn for_process(
        &self,
        configured: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Vec<(OsString, OsString)> {
        process::environment(self.variables.iter().cloned(), configured)
    }

    /// Returns a hash of everything that decides which process serves a client: the resolved transport of the server, the
    /// secrets among the defaults of its tools, and the variables that its process inherits. Clients with the same hash
    /// can share the process.
    pub(crate) fn process_hash(&self, name: &str, server: &Server) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(name.as_bytes());
        let expanded = self.expand(name, server);
        // A client whose secrets differ needs its own process, whether the process gets them at its start or in calls.
        for default in expanded.iter().flat_map(Server::tool_defaults) {
            if default.shown().is_none() {
                add(default.expose().to_string().as_bytes());
            }
        }
        match expanded.map(|server| server.transport) {
            Ok(Transport::Stdio { command, args, env, cwd }) => {
                add(command.as_bytes());
                add(&(args.len() as u64).to_le_bytes());
                for arg in &args {
                    add(arg.expose().as_bytes());
                }
                let configured =
                    env.iter().map(|(name, value)| (name.into(), value.expose().into()));
                let variables = self.for_process(configured);
                let of_work = |name: &OsStr| !TERMINAL_VARIABLES.iter().any(|known| name == *known);
                for (name, value) in variables.iter().filter(|(name, _)| of_work(name)) {
                    add(name.as_encoded_bytes());
                    add(value.as_encoded_bytes());
                }
                add(cwd.unwrap_or_default().as_os_str().as_encoded_bytes());
            }
            Ok(Transport::Http { url, variant, headers, oauth }) => {
                add(url.as_bytes());
                add(variant.name().as_bytes());
                for (name, value) in &headers {
                    add(name.as_bytes());
                    add(value.expose().as_bytes());
                }
                add(oauth.client_id.unwrap_or_default().as_bytes());
                add(oauth
                    .client_secret
                    .map_or_else(String::new, |it| it.expose().into())
                    .as_bytes());
                add(oauth.scopes.join(" ").as_bytes());
            }
            // Such a server cannot start. Clients for which it fails for the same reason share the failure.
            Err(error) => add(error.problem.as_bytes()),
        }
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::GatewayConfig;

    fn environment(pairs: &[(&str, &str)], folder: &str) -> ClientEnvironment {
        let pairs = pairs.iter().map(|(name, value)| (name.into(), value.into()));
        ClientEnvironment::new(pairs, Some(folder.into()))
    }

    fn hash(environment: &ClientEnvironment, lines: &str) -> blake3::Hash {
        let config = GatewayConfig::from_toml(&format!("[servers.it]\n{lines}")).unwrap();
        environment.process_hash("it", &config.servers["it"])
    }

    #[test]
    fn clients_share_a_process_if_its_resolved_config_is_the_same() {
        let here = environment(&[("PATH", "/bin"), ("TOKEN", "1"), ("TERM", "xterm")], "/here");
        let there = environment(&[("PATH", "/bin"), ("TOKEN", "2")], "/there");
        let plain = "command = 'files'\nargs = ['/data']";
        assert_eq!(hash(&here, plain), hash(&there, plain));
        for different in [
            "command = 'files'\nargs = ['${workspaceFolder}']",
            "command = 'files'\ncwd = '${workspaceFolder}'",
            "command = 'files'\nenv = { KEY = '${TOKEN}' }",
            "url = 'https://a.example/${TOKEN}'",
            "url = 'https://a.example'\nheaders = { Authorization = '${TOKEN}' }",
            "command = 'files'\ntools.read.defaults = { key = '${TOKEN}' }",
        ] {
            assert_ne!(hash(&here, different), hash(&there, different), "{different}");
            assert_eq!(hash(&here, different), hash(&here.clone(), different), "{different}");
        }
        let other_path = environment(&[("PATH", "/usr/bin")], "/here");
        assert_ne!(hash(&here, plain), hash(&other_path, plain), "another `PATH`");
        assert_ne!(hash(&here, plain), hash(&here, "command = 'files'\nargs = ['/data', '']"));
        let unset = "command = 'files'\nargs = ['${MISSING}']";
        assert_eq!(hash(&here, unset), hash(&there, unset), "both fail for the same reason");
    }

    #[test]
    fn a_server_starts_in_the_working_folder_only_if_its_config_refers_to_it() {
        let here = environment(&[("HOME", "/")], "/here");
        let start_folder = |lines: &str| {
            let config = GatewayConfig::from_toml(&format!("[servers.it]\n{lines}")).unwrap();
            match here.expand("it", &config.servers["it"]).unwrap().transport {
                Transport::Stdio { cwd, .. } => cwd,
                Transport::Http { .. } => None,
            }
        };
        assert_eq!(start_folder("command = 'files'"), Some("/".into()));
        assert_eq!(start_folder("command = 'files'\ncwd = '/data'"), Some("/data".into()));
        let refers = "command = 'files'\nargs = ['${workspaceFolder}/x']";
        assert_eq!(start_folder(refers), Some("/here".into()));
    }

    fn any_environment() -> impl Strategy<Value = ClientEnvironment> {
        let value = prop::sample::select(vec!["", "x", "y", "/bin"]);
        let pairs = prop::collection::btree_map(
            prop::sample::select(vec!["A", "B", "PATH", "HOME", "TERM", "LANG", "SECRET"]),
            value,
            0..6,
        );
        let folder = prop::sample::select(vec!["/here", "/there"]);
        (pairs, folder)
            .prop_map(|(pairs, folder)| environment(&pairs.into_iter().collect::<Vec<_>>(), folder))
    }

    proptest! {
        /// Two clients share a process exactly if the same program would be started for both, in the same folder, with
        /// the same arguments and variables. Otherwise one client could use what belongs to the other.
        #[test]
        fn a_process_is_shared_exactly_if_it_would_be_the_same(
            args in prop::collection::vec(
                prop::sample::select(vec!["", "a", "${A}", "${B:-b}", "${workspaceFolder}", "~/x"]),
                0..3,
            ),
            variable in prop::sample::select(vec!["", "${A}", "x"]),
            cwd in prop::option::of(prop::sample::select(vec!["/data", "${workspaceFolder}"])),
            one in any_environment(),
            two in any_environment(),
        ) {
            let cwd = cwd.map_or_else(String::new, |cwd| format!("cwd = '{cwd}'"));
            let config = format!(
                "[servers.it]\ncommand = 'run'\nargs = {args:?}\nenv = {{ V = '{variable}' }}\n{cwd}"
            );
            let config = GatewayConfig::from_toml(&config).unwrap();
            let server = &config.servers["it"];
            let launch = |client: &ClientEnvironment| match client.expand("it", server) {
                Ok(Server { transport: Transport::Stdio { command, args, env, cwd }, .. }) => {
                    let configured = env.iter().map(|(name, value)| (name.into(), value.expose().into()));
                    let mut variables = client.for_process(configured);
                    variables.retain(|(name, _)| name != "TERM" && name != "SHELL");
                    let args: Vec<_> = args.iter().map(|arg| arg.expose().to_owned()).collect();
                    Ok((command, args, variables, cwd))
                }
                Ok(_) => unreachable!("the config has a command"),
                Err(error) => Err(error.problem),
            };
            let is_shared = one.process_hash("it", server) == two.process_hash("it", server);
            prop_assert_eq!(is_shared, launch(&one) == launch(&two));
        }
    }
}
