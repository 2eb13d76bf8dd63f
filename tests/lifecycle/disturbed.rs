//! A simulated cluster on which something goes wrong while a verb is at work.

use std::time::Duration;

use olmkit::lifecycle::api::{Key, Resource};
use olmkit::lifecycle::cluster::{Cluster, ClusterError};
use olmkit::lifecycle::simulate::Simulation;
use serde_json::Value;

/// What goes wrong on a cluster; nothing, as [`Disturbed::not`] makes it.
pub(crate) struct Disturbed<'d> {
    pub(crate) cluster: &'d mut Simulation,
    /// It is lost after so many calls, as if the tool had been killed.
    pub(crate) calls: usize,
    /// It is lost right after so many deletions.
    pub(crate) deletions: usize,
    /// Whether the tool gets a signal when it is lost: then there is time to clean up.
    pub(crate) is_signal: bool,
    /// When the command has to be over, as one behind an API server.
    pub(crate) deadline: Option<Duration>,
    /// What somebody else does whenever time passes.
    pub(crate) neighbour: fn(&mut Simulation),
}

impl<'d> Disturbed<'d> {
    pub(crate) fn not(cluster: &'d mut Simulation) -> Self {
        let (calls, deletions) = (usize::MAX, usize::MAX);
        Self { cluster, calls, deletions, is_signal: false, deadline: None, neighbour: |_| () }
    }

    fn call(&mut self) -> Result<&mut Simulation, ClusterError> {
        if self.deletions == 0 {
            return Err(ClusterError::Interrupted);
        }
        self.calls = self.calls.checked_sub(1).ok_or(ClusterError::Interrupted)?;
        Ok(self.cluster)
    }
}

impl Cluster for Disturbed<'_> {
    fn context(&self) -> &str {
        ""
    }

    fn list(&mut self, resource: &Resource, namespace: Option<&str>) -> Result<Vec<Value>, ClusterError> {
        self.call()?.list(resource, namespace)
    }

    fn get(
        &mut self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Value>, ClusterError> {
        self.call()?.get(resource, namespace, name)
    }

    fn create(&mut self, resource: &Resource, object: &Value) -> Result<Value, ClusterError> {
        self.call()?.create(resource, object)
    }

    fn patch(&mut self, resource: &Resource, key: &Key, patch: &Value) -> Result<Value, ClusterError> {
        self.call()?.patch(resource, key, patch)
    }

    fn delete(&mut self, resource: &Resource, key: &Key) -> Result<(), ClusterError> {
        self.call()?;
        self.deletions -= 1;
        self.cluster.delete(resource, key)
    }

    fn wait(&mut self, timeout: Duration) -> Result<bool, ClusterError> {
        let done = self.call()?.wait(timeout)?;
        (self.neighbour)(self.cluster);
        Ok(done)
    }

    fn now(&self) -> Duration {
        self.cluster.now()
    }

    fn time_of_day(&self) -> i64 {
        self.cluster.time_of_day()
    }

    fn deadline(&self) -> Option<Duration> {
        self.deadline
    }

    fn begin_cleanup(&mut self, _: Duration) {
        if self.is_signal {
            self.calls = usize::MAX;
        }
    }
}
