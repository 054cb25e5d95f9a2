//! The tasks that clients know, by the gateway's ids.
//!
//! An id is random, so it cannot be guessed, and it leads to the server, the tool and the client of the task. Rejected:
//! an encrypted id that contains all of this. It would need no table, but the number of tasks could then not be limited,
//! no server could be kept running until its tasks are over, and no task could be cancelled when its client disconnects.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::fields::TaskFields;
use crate::config::GatewayLimits;
use crate::gateway::client::Client;
use crate::upstream::ServerTask;

/// How long a task is kept at most, even if its server keeps it longer.
pub(super) const MAX_TTL: Duration = Duration::from_hours(24);

/// The client that a task belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::gateway) struct TaskOwner {
    id: OwnerId,
    profile: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OwnerId {
    /// The client of a stream. Its tasks end with the stream.
    Session(u64),
    /// All clients with the same name and profile. Over HTTP, requests of the newer protocol do not tell more about
    /// their client.
    Group(u64),
}

impl TaskOwner {
    pub(in crate::gateway) fn new(client: &Client, profile: Option<&str>) -> Self {
        let id = client.identified().map(|client| OwnerId::Session(client.id));
        let id = id.unwrap_or(OwnerId::Group(client.group));
        Self { id, profile: profile.map(str::to_owned) }
    }
}

/// A task that a client knows.
#[derive(Debug)]
pub(super) struct OpenTask {
    pub(super) task: ServerTask,
    /// The tool that was called, by the server's own name.
    pub(super) tool: String,
    owner: TaskOwner,
    created_at: Instant,
    expires_at: Instant,
}

impl OpenTask {
    pub(super) fn new(
        task: ServerTask,
        tool: String,
        owner: TaskOwner,
        fields: &TaskFields,
    ) -> Self {
        let created_at = Instant::now();
        let mut task = Self { task, tool, owner, created_at, expires_at: created_at + MAX_TTL };
        task.update(fields);
        task
    }

    fn update(&mut self, fields: &TaskFields) {
        self.expires_at = self.created_at + fields.ttl.unwrap_or(MAX_TTL).min(MAX_TTL);
        if fields.status.is_final() {
            self.task.set_over();
        }
    }
}

/// What is needed to send a request about a task.
#[derive(Debug, Clone)]
pub(super) struct TaskTarget {
    pub(super) id: String,
    pub(super) server: Arc<str>,
    pub(super) tool: String,
}

/// The tasks of all clients.
#[derive(Debug, Default)]
pub(in crate::gateway) struct OpenTasks(Mutex<HashMap<String, OpenTask>>);

impl OpenTasks {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, OpenTask>> {
        self.0.lock()
    }

    /// Stores a task, and returns its id for the client. If the client or all clients have the maximum number of tasks,
    /// the oldest task that is over is dropped. If none of them is over, the new task is returned as the error.
    pub(super) fn add(
        &self,
        new: OpenTask,
        limits: &GatewayLimits,
    ) -> Result<String, Box<OpenTask>> {
        let Ok(random) = toolcrib_server::random::hex::<16>() else { return Err(Box::new(new)) };
        let id = format!("toolcrib-{random}");
        self.drop_expired();
        let mut tasks = self.lock();
        // A server that gives an id again, for example after a restart, no longer has the earlier task. Otherwise its
        // owner could use the new task.
        let is_replaced = |_: &String, task: &mut OpenTask| task.task.is_replaced_by(&new.task);
        let replaced: Vec<_> = tasks.extract_if(is_replaced).collect();
        for (_, mut replaced) in replaced {
            replaced.task.set_over();
        }
        let of_owner = |task: &OpenTask| task.owner == new.owner;
        let is_full = tasks.len() >= limits.tasks;
        let is_owner_full =
            tasks.values().filter(|task| of_owner(task)).count() >= limits.tasks_per_client;
        let dropped = if is_full || is_owner_full {
            // A client at its own maximum must not push out the tasks of others.
            let over = tasks
                .iter()
                .filter(|(_, task)| task.task.is_over() && (!is_owner_full || of_owner(task)));
            let oldest = over.min_by_key(|(_, task)| task.created_at).map(|(id, _)| id.clone());
            let Some(oldest) = oldest else { return Err(Box::new(new)) };
            tasks.remove(&oldest)
        } else {
            None
        };
        tasks.insert(id.clone(), new);
        drop((tasks, dropped));
        Ok(id)
    }

    /// Finds a task by the gateway's id. Another client's task is not found.
    pub(super) fn find(&self, id: &str, owner: &TaskOwner) -> Option<TaskTarget> {
        let tasks = self.lock();
        let found = tasks.get(id)?;
        let may_use = found.owner == *owner && Instant::now() < found.expires_at;
        may_use.then(|| TaskTarget {
            id: found.task.id().to_owned(),
            server: Arc::clone(&found.task.upstream().name),
            tool: found.tool.clone(),
        })
    }

    /// Returns what `look` returns for a task, if the task is still stored.
    pub(super) fn with<T>(&self, id: &str, look: impl FnOnce(&ServerTask) -> T) -> Option<T> {
        self.lock().get(id).map(|found| look(&found.task))
    }

    /// Records what the server has reported about a task.
    pub(super) fn update(&self, id: &str, fields: &TaskFields) {
        if let Some(task) = self.lock().get_mut(id) {
            task.update(fields);
        }
    }

    /// Records that a task was cancelled. It no longer keeps its server running, and may be dropped for a new task.
    pub(super) fn set_cancelled(&self, id: &str) {
        if let Some(task) = self.lock().get_mut(id) {
            task.task.set_over();
        }
    }

    /// Drops a task that its server no longer knows.
    pub(super) fn remove(&self, id: &str) {
        let removed = self.lock().remove(id);
        if let Some(mut removed) = removed {
            removed.task.set_over();
        }
    }

    /// Drops the tasks of a client that has disconnected. Tasks that are not over are cancelled.
    pub(in crate::gateway) fn end_session(&self, session: u64) {
        let is_ended = |_: &String, task: &mut OpenTask| task.owner.id == OwnerId::Session(session);
        let ended: Vec<_> = self.lock().extract_if(is_ended).collect();
        drop(ended);
    }

    /// Drops the tasks that have expired. Tasks whose process has ended no longer keep their server running.
    pub(in crate::gateway) fn drop_expired(&self) {
        let now = Instant::now();
        for task in self.lock().values_mut().filter(|task| !task.task.may_exist()) {
            task.task.set_over();
        }
        let expired: Vec<_> = self.lock().extract_if(|_, task| task.expires_at <= now).collect();
        for (_, mut expired) in expired {
            // The server's own TTL has passed, so the server has dropped the task, too. Only a task that reaches `MAX_TTL`
            // is cancelled.
            if expired.expires_at < expired.created_at + MAX_TTL {
                expired.task.set_over();
            }
        }
    }
}
