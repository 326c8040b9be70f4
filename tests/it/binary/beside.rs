//! A second daemon beside the first one, and what people type to daemons.

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{Bench, Process, free_ports};

/// A daemon with the first one's repository and AWS, and a data directory of its own.
pub struct Beside {
    process: Process,
    page_port: u16,
    configuration: PathBuf,
}

impl Bench {
    /// The first daemon's configuration.
    pub fn configuration(&self) -> PathBuf {
        self.path("fleetwright.yaml")
    }

    /// Starts another daemon of a fleet with the data directory of this name.
    pub fn start_beside(&self, data: &str, fleet: &str) -> Beside {
        let text = std::fs::read_to_string(self.configuration()).unwrap();
        let mut configuration: Value = serde_json::from_str(&text).unwrap();
        let [page_port, webhook, metrics] = free_ports();
        configuration["fleet"]["id"] = json!(fleet);
        configuration["data"]["directory"] = json!(self.path(data));
        configuration["export"]["directory"] = json!(self.path(&format!("export-{data}")));
        configuration["page"]["listen"] = json!(format!("127.0.0.1:{page_port}"));
        configuration["webhook"]["listen"] = json!(format!("127.0.0.1:{webhook}"));
        configuration["metrics"]["listen"] = json!(format!("127.0.0.1:{metrics}"));
        let file = self.path(&format!("fleetwright-{data}.yaml"));
        std::fs::write(&file, configuration.to_string()).unwrap();
        let arguments = ["run".to_owned(), "--config".to_owned(), file.display().to_string()];
        let process = Process::start("beside", self.path(&format!("run-{data}.log")), &arguments);
        Beside { process, page_port, configuration: file }
    }

    /// JSON from the API of another daemon; null while it does not answer.
    pub async fn api_of(&self, beside: &Beside, path: &str) -> Value {
        self.get(&format!("http://127.0.0.1:{}{path}", beside.page_port)).await.unwrap_or_default()
    }

    /// One object of another daemon's store.
    pub async fn object_of(&self, beside: &Beside, key: &str) -> Option<Value> {
        let list = self.api_of(beside, "/api/v1/objects").await;
        list["items"].as_array()?.iter().find(|object| super::key_of(object) == key).cloned()
    }
}

impl Beside {
    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.process.is_alive()
    }

    /// Kills it, as a crash would.
    pub fn kill(mut self) {
        self.process.kill();
    }

    /// Its configuration.
    pub fn configuration(&self) -> PathBuf {
        self.configuration.clone()
    }
}

/// Runs a command on the data directory of a configuration.
pub fn tell(configuration: &std::path::Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetwright"));
    let output = command.args(arguments).arg("--config").arg(configuration).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    output
}
