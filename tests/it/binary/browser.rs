//! A headless Chromium, driven over its DevTools protocol: enough to open a page, ask it things, and take
//! its picture.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

/// Names under which Chromium is installed.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
/// Longest wait for the browser itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// A browser with one page.
pub struct Browser {
    child: Child,
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    commands: u64,
    // Last, so that the browser is gone when its profile goes.
    _profile: TempDir,
}

impl Browser {
    /// Starts it. A machine without Chromium fails the test: the page would not be tried at all.
    pub async fn start() -> Self {
        let profile = tempfile::tempdir().unwrap();
        let data = format!("--user-data-dir={}", profile.path().display());
        let started = NAMES.iter().find_map(|name| {
            Command::new(name)
                .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
                .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
                .args([
                    "--disable-dev-shm-usage",
                    "--remote-debugging-port=0",
                    "--window-size=1280,1000",
                    &data,
                ])
                .arg("about:blank")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
        });
        let mut child = started.unwrap_or_else(|| panic!("none of {NAMES:?} is installed: install chromium"));
        let socket = match connect(profile.path()).await {
            Ok(socket) => socket,
            Err(why) => {
                child.kill().ok();
                child.wait().ok();
                panic!("chromium does not answer: {why}");
            }
        };
        Self { child, socket, commands: 0, _profile: profile }
    }

    /// Performs a command of the protocol and gives its result.
    pub async fn command(&mut self, method: &str, parameters: Value) -> Value {
        self.commands += 1;
        let id = self.commands;
        let text = json!({"id": id, "method": method, "params": parameters}).to_string();
        self.socket.send(Message::text(text)).await.unwrap();
        let answer = async {
            loop {
                let message = self.socket.next().await.expect("chromium is there").unwrap();
                let Message::Text(text) = message else { continue };
                let value: Value = serde_json::from_str(&text).unwrap();
                // Events come in between; nobody here asked for them.
                if value["id"] == id {
                    return value;
                }
            }
        };
        let answer = tokio::time::timeout(PATIENCE, answer).await.expect("chromium answers");
        assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
        answer["result"].clone()
    }

    /// Opens an address.
    pub async fn open(&mut self, url: &str) {
        let result = self.command("Page.navigate", json!({"url": url})).await;
        assert!(result["errorText"].is_null(), "{url}: {result}");
    }

    /// Value of a JavaScript expression in the page.
    pub async fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let result = self.command("Runtime.evaluate", parameters).await;
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result:#}");
        result["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    pub async fn until(&mut self, what: &str, expression: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.evaluate(expression).await != true {
            if Instant::now() > deadline {
                let text = self.evaluate("document.body.innerText").await;
                panic!("not in time: {what}; the page says:\n{}", text.as_str().unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    /// Writes a picture of the page.
    pub async fn screenshot(&mut self, file: &Path) {
        let result = self.command("Page.captureScreenshot", json!({"format": "png"})).await;
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(result["data"].as_str().unwrap()).unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, bytes).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Finds the port that the browser has taken, and connects to its page.
async fn connect(profile: &Path) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match try_connect(profile).await {
            Ok(socket) => return Ok(socket),
            Err(why) if Instant::now() > deadline => return Err(why),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

async fn try_connect(profile: &Path) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, String> {
    let text =
        std::fs::read_to_string(profile.join("DevToolsActivePort")).map_err(|error| error.to_string())?;
    let port = text.lines().next().unwrap_or_default();
    let list = reqwest::get(format!("http://127.0.0.1:{port}/json/list"))
        .await
        .map_err(|error| error.to_string())?;
    let targets: Vec<Value> = list.json().await.map_err(|error| error.to_string())?;
    let page = targets.iter().find(|target| target["type"] == "page").ok_or("no page")?;
    let url = page["webSocketDebuggerUrl"].as_str().ok_or("no address of the page")?;
    let (socket, _) = tokio_tungstenite::connect_async(url).await.map_err(|error| error.to_string())?;
    Ok(socket)
}
