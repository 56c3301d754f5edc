//! Chromium, driven over WebDriver (W3C) by chromedriver, as a user's browser would show the console.
//!
//! Does not depend on the console: pages are opened by address, elements found by selector.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::tools::{is_installed, line_with};
use crate::wait::{WAIT_LIMIT, eventually};

/// Time for the browser to end.
const QUIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Keys without a character (WebDriver's code points).
pub mod key {
    /// The Enter key.
    pub const ENTER: &str = "\u{e007}";
    /// The Escape key.
    pub const ESCAPE: &str = "\u{e00c}";
    /// The Tab key.
    pub const TAB: &str = "\u{e004}";
    /// The Control key, which stays pressed until the end of the input.
    pub const CONTROL: &str = "\u{e009}";
}

/// One window of one browser. Dropping it ends the browser.
pub struct Browser {
    driver: Child,
    address: SocketAddr,
    session: String,
    tasks: TaskSet,
    _folder: TempDir,
}

impl Browser {
    /// Starts a browser without a history. `None`, and a report, if chromedriver is missing.
    pub async fn start() -> Option<Self> {
        if !is_installed("chromedriver") {
            return None;
        }
        let folder = tempfile::Builder::new().prefix("portico-browser-").tempdir().unwrap();
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("TMPDIR", folder.path())
            .env("HOME", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let line = line_with(driver.stdout.take().unwrap(), "started successfully on port");
        let port = line.trim_end_matches('.').rsplit(' ').next().unwrap().parse().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut browser =
            Self { driver, address, session: String::new(), tasks: TaskSet::new(), _folder: folder };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--window-size=1360,860",
            "--force-color-profile=srgb",
            "--hide-scrollbars",
            "--disable-background-networking",
            "--no-first-run",
        ];
        let capabilities = json!({"alwaysMatch": {
            "browserName": "chrome",
            "acceptInsecureCerts": true,
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }});
        let created = browser.command(Method::POST, "/session", &json!({"capabilities": capabilities})).await;
        browser.session = format!("/session/{}", created["sessionId"].as_str().expect("a session"));
        Some(browser)
    }

    /// Sends one command; panics with the driver's error if it fails.
    async fn command(&self, method: Method, path: &str, body: &Value) -> Value {
        self.try_command(method.clone(), path, body)
            .await
            .unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    async fn try_command(&self, method: Method, path: &str, body: &Value) -> Result<Value, Value> {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) = http1::handshake(TokioIo::new(tcp)).await.unwrap();
        self.tasks.spawn_until_cancelled("webdriver", async move {
            // The failed request reports the reason.
            let _ = connection.await;
        });
        let body = if method == Method::POST { body.to_string() } else { String::new() };
        let request = Request::builder().method(method).uri(format!("{}{path}", self.session));
        let request =
            request.header("host", self.address.to_string()).header("content-type", "application/json");
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        let answered = tokio::time::timeout(WAIT_LIMIT, async {
            let response = sender.send_request(request).await.unwrap();
            let is_good = response.status().is_success();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let value: Value = serde_json::from_slice(&body).unwrap();
            if is_good { Ok(value["value"].clone()) } else { Err(value["value"]["message"].clone()) }
        });
        answered.await.expect("the browser answers in time")
    }

    /// Opens an address.
    pub async fn open(&self, address: &str) {
        self.command(Method::POST, "/url", &json!({"url": address})).await;
    }

    /// Runs a script in the page with these arguments; returns its result.
    pub async fn run(&self, script: &str, arguments: Value) -> Value {
        self.command(Method::POST, "/execute/sync", &json!({"script": script, "args": arguments})).await
    }

    /// Waits until a script returns a true value, and returns that value.
    pub async fn wait_for_script(&self, what: &str, script: &str) -> Value {
        eventually(what, || async {
            let body = json!({"script": script, "args": []});
            match self.try_command(Method::POST, "/execute/sync", &body).await {
                Ok(Value::Null | Value::Bool(false)) => Err(self.text().await.into()),
                other => other,
            }
        })
        .await
    }

    /// Returns all text of the page.
    pub async fn text(&self) -> String {
        self.run("return document.body.innerText", json!([])).await.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the page contains this text.
    pub async fn wait_for_text(&self, text: &str) {
        let script = format!("return document.body.innerText.includes({})", json!(text));
        self.wait_for_script(&format!("the text {text:?}"), &script).await;
    }

    async fn element(&self, selector: &str) -> String {
        let found = eventually(selector, || async {
            let body = json!({"using": "css selector", "value": selector});
            self.try_command(Method::POST, "/element", &body).await
        });
        let found = found.await;
        let id = found.as_object().and_then(|element| element.values().next()?.as_str());
        id.expect("an element has an id").to_owned()
    }

    /// Clicks on the element of a selector.
    pub async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.command(Method::POST, &format!("/element/{element}/click"), &json!({})).await;
    }

    /// Types into the element of a selector, after its present text.
    pub async fn fill(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.command(Method::POST, &format!("/element/{element}/value"), &json!({"text": text})).await;
    }

    /// Presses keys one after the other, at the current focus.
    pub async fn press(&self, keys: &[&str]) {
        let actions: Vec<Value> = keys
            .iter()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key})))
            .collect();
        let body = json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]});
        self.command(Method::POST, "/actions", &body).await;
    }

    /// Emulates a system preference for light or dark colors.
    pub async fn set_color_scheme(&self, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        let body = json!({"cmd": "Emulation.setEmulatedMedia", "params": {"features": features}});
        self.command(Method::POST, "/goog/cdp/execute", &body).await;
    }

    /// Clears the cache.
    pub async fn clear_cache(&self) {
        let body = json!({"cmd": "Network.clearBrowserCache", "params": {}});
        self.command(Method::POST, "/goog/cdp/execute", &body).await;
    }

    /// Returns errors and warnings that the browser has logged since the last call.
    pub async fn logged_errors(&self) -> Vec<String> {
        let log = self.command(Method::POST, "/se/log", &json!({"type": "browser"})).await;
        let bad = |entry: &&Value| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING"));
        log.as_array().unwrap().iter().filter(bad).map(|entry| entry["message"].to_string()).collect()
    }

    /// Returns the origins of all requests since the last call.
    pub async fn origins(&self) -> BTreeSet<String> {
        let log = self.command(Method::POST, "/se/log", &json!({"type": "performance"})).await;
        let sent = log.as_array().unwrap().iter().filter_map(|entry| {
            let entry: Value = serde_json::from_str(entry["message"].as_str()?).ok()?;
            let message = &entry["message"];
            let url = message["params"]["request"]["url"]
                .as_str()
                .filter(|_| message["method"] == "Network.requestWillBeSent")?;
            let end = url.match_indices('/').nth(2).map_or(url.len(), |(at, _)| at);
            Some(url[..end].to_owned())
        });
        sent.filter(|origin| !origin.starts_with("data:")).collect()
    }

    /// Returns the content of the window as PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        let png = self.command(Method::GET, "/screenshot", &Value::Null).await;
        base64::Engine::decode(&base64::engine::general_purpose::STANDARD, png.as_str().unwrap()).unwrap()
    }

    /// Sets the size of the page, which may be smaller than the smallest window.
    pub async fn resize(&self, width: u32, height: u32) {
        let params = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        let body = json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": params});
        self.command(Method::POST, "/goog/cdp/execute", &body).await;
    }

    /// Ends the browser, and waits for its end.
    pub async fn quit(self) {
        drop(self);
    }

    /// Ends the session, and with it the browser. Synchronous, because the drop of a failed test cannot await.
    fn end_session(&self) -> std::io::Result<()> {
        let mut stream = std::net::TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(QUIT_TIMEOUT))?;
        let head = format!(
            "DELETE {} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n",
            self.session, self.address
        );
        stream.write_all(head.as_bytes())?;
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.end_session();
        let _ = kill_process(Pid::from_child(&self.driver), Signal::TERM);
        let _ = self.driver.wait();
    }
}
