//! An operator as users of kube-rs write them: it maintains a ConfigMap per page of each Book, a resource derived from
//! its own types, and reports in the status. It stops at positions that a test selects, to be killed there.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::runtime::finalizer::{Error as FinalizerError, Event, finalizer};
use kube::runtime::{Controller, watcher};
use kube::{Client, CustomResource, KubeSchema, Resource, ResourceExt};
use portico_kit::tasks::TaskSet;
use portico_tests::{WAIT_LIMIT, wait_until};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::{Notify, watch};

/// Finalizer of a Book until its cleanup.
pub(crate) const FINALIZER: &str = "books.example.com/farewell";

/// Spec of a Book.
#[derive(CustomResource, KubeSchema, Clone, Debug, Deserialize, Serialize)]
#[kube(group = "books.example.com", version = "v1", kind = "Book", namespaced, shortname = "bk")]
#[kube(status = "BookStatus", printcolumn(name = "Pages", type_ = "integer", json_path = ".status.pages"))]
#[serde(rename_all = "camelCase")]
pub(crate) struct BookSpec {
    /// Text on the cover.
    #[x_kube(validation = Rule::new("self == oldSelf").message("a title stays"))]
    pub(crate) title: String,
    /// Number of pages.
    #[schemars(range(max = 20))]
    pub(crate) pages: u8,
    /// Material of the pages.
    #[serde(default = "plain")]
    pub(crate) paper: String,
}

fn plain() -> String {
    "plain".into()
}

/// Status of a Book.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct BookStatus {
    /// Generation of the spec that this status describes.
    pub(crate) observed_generation: i64,
    /// Number of pages.
    pub(crate) pages: u8,
}

/// Position of the operator between two writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// The finalizer exists, and no page.
    BeforePages,
    /// The first page exists.
    AmongPages,
    /// All pages exist, and the status does not report them.
    BeforeStatus,
    /// All writes are done.
    AfterStatus,
    /// No write of a deletion is done.
    BeforeFarewell,
    /// All writes of a deletion are done except for the removal of the finalizer.
    AfterFarewell,
}

/// Stops the operator at a position until the gate is opened.
pub(crate) struct Gate {
    at: Option<Position>,
    reached: Notify,
    open: watch::Sender<bool>,
}

impl Gate {
    /// Creates a gate at this position, or without one.
    pub(crate) fn at(position: impl Into<Option<Position>>) -> Arc<Self> {
        Arc::new(Self { at: position.into(), reached: Notify::new(), open: watch::channel(false).0 })
    }

    /// Waits until the operator has reached the position.
    pub(crate) async fn wait_reached(&self) {
        let reached = tokio::time::timeout(WAIT_LIMIT, self.reached.notified()).await;
        reached.unwrap_or_else(|_| panic!("the operator did not reach {:?}", self.at));
    }

    /// Lets the operator continue.
    pub(crate) fn open(&self) {
        self.open.send_replace(true);
    }

    async fn pass(&self, position: Position) {
        if self.at == Some(position) {
            self.reached.notify_one();
            self.open.subscribe().wait_for(|open| *open).await.unwrap();
        }
    }
}

/// A running operator.
pub(crate) struct Operator {
    tasks: TaskSet,
}

impl Operator {
    /// Starts an operator with this gate.
    pub(crate) fn start(client: &Client, gate: &Arc<Gate>) -> Self {
        let books: Api<Book> = Api::default_namespaced(client.clone());
        let pages: Api<ConfigMap> = Api::default_namespaced(client.clone());
        let binder =
            Arc::new(BookController { books: books.clone(), pages: pages.clone(), gate: gate.clone() });
        let work = Controller::new(books, watcher::Config::default())
            .owns(pages, watcher::Config::default().labels("book"))
            .run(reconcile, |_, _, _| Action::requeue(Duration::from_millis(200)), binder);
        let tasks = TaskSet::new();
        tasks.spawn_until_cancelled("operator", work.for_each(async |_| {}));
        Self { tasks }
    }

    /// Kills the operator at its position.
    pub(crate) async fn kill(self) {
        self.tasks.cancel();
        wait_until("the operator's task has ended", || std::future::ready(self.tasks.running().is_empty()))
            .await;
    }
}

struct BookController {
    books: Api<Book>,
    pages: Api<ConfigMap>,
    gate: Arc<Gate>,
}

async fn reconcile(
    book: Arc<Book>,
    binder: Arc<BookController>,
) -> Result<Action, FinalizerError<kube::Error>> {
    finalizer(&binder.books, FINALIZER, book, async |event| {
        match event {
            Event::Apply(book) => binder.apply(&book).await?,
            Event::Cleanup(book) => binder.cleanup(&book).await?,
        }
        Ok(Action::await_change())
    })
    .await
}

impl BookController {
    /// Creates the missing pages, deletes excess ones, and reports in the status.
    async fn apply(&self, book: &Book) -> kube::Result<()> {
        let apply_params = PatchParams::apply("binder").force();
        self.gate.pass(Position::BeforePages).await;
        for number in 1..=book.spec.pages {
            let page = page(book, number);
            self.pages.patch(&page.name_any(), &apply_params, &Patch::Apply(page)).await?;
            if number == 1 {
                self.gate.pass(Position::AmongPages).await;
            }
        }
        let existing =
            self.pages.list(&ListParams::default().labels(&format!("book={}", book.name_any()))).await?;
        let expected: Vec<String> =
            (1..=book.spec.pages).map(|number| page(book, number).name_any()).collect();
        for excess in existing.iter().map(ResourceExt::name_any).filter(|name| !expected.contains(name)) {
            self.pages.delete(&excess, &DeleteParams::default()).await?;
        }
        self.gate.pass(Position::BeforeStatus).await;
        let status =
            BookStatus { observed_generation: book.meta().generation.unwrap_or(0), pages: book.spec.pages };
        let reported =
            json!({"apiVersion": Book::api_version(&()), "kind": Book::kind(&()), "status": status});
        self.books.patch_status(&book.name_any(), &apply_params, &Patch::Apply(reported)).await?;
        self.gate.pass(Position::AfterStatus).await;
        Ok(())
    }

    /// Writes a farewell for a deleted book. Its pages are deleted by the garbage collector.
    async fn cleanup(&self, book: &Book) -> kube::Result<()> {
        self.gate.pass(Position::BeforeFarewell).await;
        let name = format!("{}-farewell", book.name_any());
        let word = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"title": book.spec.title}});
        self.pages.patch(&name, &PatchParams::apply("binder").force(), &Patch::Apply(word)).await?;
        self.gate.pass(Position::AfterFarewell).await;
        Ok(())
    }
}

/// Returns a page in its desired state.
fn page(book: &Book, number: u8) -> ConfigMap {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": format!("{}-{number}", book.name_any()), "labels": {"book": book.name_any()},
            "ownerReferences": [book.controller_owner_ref(&())],
        },
        "data": {"paper": book.spec.paper},
    }))
    .unwrap()
}
