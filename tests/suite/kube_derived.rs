//! A kube-rs controller of a derived custom resource: killed between any two of its writes, or while the server is
//! killed, it converges: each page exists once, the status has the newest generation, nothing remains after a deletion.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::wait::{Condition, await_condition, conditions};
use kube::{Client, CustomResourceExt, ResourceExt};
use portico_tests::{Portico, WAIT_LIMIT};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::book_operator::{Book, BookSpec, BookStatus, FINALIZER, Gate, Operator, Position};

/// Helper of tests that create and change books.
struct Shelf {
    client: Client,
    books: Api<Book>,
    pages: Api<ConfigMap>,
}

impl Shelf {
    async fn of(portico: &Portico) -> Self {
        let client = portico.kube().await;
        let (books, pages) =
            (Api::default_namespaced(client.clone()), Api::default_namespaced(client.clone()));
        Self { client, books, pages }
    }

    /// Installs the definition and waits until it is served.
    async fn installed(portico: &Portico) -> Self {
        let shelf = Self::of(portico).await;
        let definitions: Api<CustomResourceDefinition> = Api::all(shelf.client.clone());
        definitions.create(&PostParams::default(), &Book::crd()).await.unwrap();
        wait_for_condition(&definitions, Book::crd_name(), conditions::is_crd_established()).await;
        shelf
    }

    async fn create(&self, name: &str, pages: u8) -> Book {
        let spec = BookSpec { title: "Of doors".into(), pages, paper: "vellum".into() };
        self.books.create(&PostParams::default(), &Book::new(name, spec)).await.unwrap()
    }

    async fn change(&self, name: &str, spec: Value) -> kube::Result<Book> {
        self.books.patch(name, &PatchParams::default(), &Patch::Merge(json!({"spec": spec}))).await
    }

    /// Returns name and uid of each page.
    async fn pages(&self, book: &str) -> BTreeMap<String, String> {
        let pages = self.pages.list(&ListParams::default().labels(&format!("book={book}"))).await.unwrap();
        pages.iter().map(|page| (page.name_any(), page.uid().unwrap())).collect()
    }

    /// Waits for a status of this generation; the pages then have their desired state.
    async fn wait_reconciled(&self, name: &str, generation: i64, pages: u8) {
        let status = BookStatus { observed_generation: generation, pages };
        let reported = wait_for_condition(&self.books, name, |book: Option<&Book>| {
            book.is_some_and(|book| book.status.as_ref() == Some(&status))
        });
        let book = reported.await.unwrap();
        assert_eq!(
            (book.metadata.generation, book.finalizers()),
            (Some(generation), &[FINALIZER.into()][..])
        );
        let wanted: Vec<String> = (1..=pages).map(|number| format!("{name}-{number}")).collect();
        assert_eq!(self.pages(name).await.into_keys().collect::<Vec<_>>(), wanted);
    }

    /// Deletes a book, which the finalizer delays.
    async fn delete(&self, book: &Book) {
        let answer = self.books.delete(&book.name_any(), &DeleteParams::default()).await.unwrap();
        assert!(
            answer.left().unwrap().metadata.deletion_timestamp.is_some(),
            "the finalizer blocks the deletion"
        );
    }

    /// Waits until a book and then its pages are deleted; the farewell remains.
    async fn wait_deleted(&self, book: &Book, pages: &BTreeMap<String, String>) {
        let name = book.name_any();
        wait_for_condition(&self.books, &name, conditions::is_deleted(&book.uid().unwrap())).await;
        for (page, uid) in pages {
            wait_for_condition(&self.pages, page, conditions::is_deleted(uid)).await;
        }
        let farewell = self.pages.get(&format!("{name}-farewell")).await.unwrap();
        assert_eq!(farewell.data.unwrap()["title"], "Of doors");
    }
}

/// Asserts that pages that exist before and after have the same uid.
fn assert_not_recreated(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) {
    let same = before.iter().all(|(page, uid)| after.get(page).is_none_or(|now| now == uid));
    assert!(same, "pages were created again: {before:?}, {after:?}");
}

/// Watches an object until the condition holds.
async fn wait_for_condition<K>(api: &Api<K>, name: &str, condition: impl Condition<K>) -> Option<K>
where
    K: kube::Resource + Clone + std::fmt::Debug + Send + DeserializeOwned + 'static,
{
    let watched = await_condition(api.clone(), name, condition);
    let in_time = tokio::time::timeout(WAIT_LIMIT, watched).await;
    in_time.unwrap_or_else(|_| panic!("{name} did not reach the expected state")).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_derived_definition_is_enforced() {
    let portico = Portico::start().await;
    let shelf = Shelf::installed(&portico).await;
    let sparse = json!({"apiVersion": "books.example.com/v1", "kind": "Book", "metadata": {"name": "sparse"},
        "spec": {"title": "Of doors", "pages": 1, "glue": "none"}});
    let path = "/apis/books.example.com/v1/namespaces/default/books";
    let created = portico.admin().post(path, &sparse).await.json();
    assert_eq!(created["spec"], json!({"title": "Of doors", "pages": 1, "paper": "plain"}));
    for (change, message) in [
        (
            json!({"pages": 21}),
            "spec.pages: Invalid value: 21: spec.pages in body should be less than or equal to 20",
        ),
        (json!({"title": "Of windows"}), "spec.title: Invalid value: \"Of windows\": a title stays"),
    ] {
        let kube::Error::Api(refused) = shelf.change("sparse", change).await.unwrap_err() else {
            panic!("{message}")
        };
        assert_eq!(refused.code, 422);
        assert!(refused.message.contains(message), "{}", refused.message);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_any_two_writes_the_operator_converges_when_it_starts_again() {
    let portico = Portico::start().await;
    let shelf = Shelf::installed(&portico).await;
    for (number, (keeping, parting)) in [
        (Position::BeforePages, Position::BeforeFarewell),
        (Position::AmongPages, Position::AfterFarewell),
        (Position::BeforeStatus, Position::BeforeFarewell),
        (Position::AfterStatus, Position::AfterFarewell),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("book-{number}");
        let gate = Gate::at(keeping);
        let operator = Operator::start(&shelf.client, &gate);
        let book = shelf.create(&name, 3).await;
        gate.wait_reached().await;
        operator.kill().await;
        let before = shelf.pages(&name).await;
        assert_eq!(before.len(), [0, 1, 3, 3][number], "{keeping:?}");
        shelf.change(&name, json!({"pages": 2})).await.unwrap();

        let gate = Gate::at(parting);
        let operator = Operator::start(&shelf.client, &gate);
        shelf.wait_reconciled(&name, 2, 2).await;
        let pages = shelf.pages(&name).await;
        assert_not_recreated(&before, &pages);
        shelf.delete(&book).await;
        gate.wait_reached().await;
        operator.kill().await;
        assert_eq!(shelf.pages(&name).await, pages, "{parting:?}: the owner still exists");

        let operator = Operator::start(&shelf.client, &Gate::at(None));
        shelf.wait_deleted(&book, &pages).await;
        operator.kill().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_continues_after_a_kill_of_the_server() {
    let mut portico = Portico::start().await;
    let mut shelf = Shelf::installed(&portico).await;
    for place in
        [Position::BeforePages, Position::AmongPages, Position::BeforeStatus, Position::BeforeFarewell]
    {
        let name = format!("{place:?}").to_lowercase();
        let gate = Gate::at(place);
        let operator = Operator::start(&shelf.client, &gate);
        let book = shelf.create(&name, 2).await;
        if place == Position::BeforeFarewell {
            shelf.wait_reconciled(&name, 1, 2).await;
            shelf.delete(&book).await;
        }
        gate.wait_reached().await;
        let before = shelf.pages(&name).await;
        portico.kill();
        portico.restart().await;
        shelf = Shelf::of(&portico).await;
        gate.open();
        if place == Position::BeforeFarewell {
            shelf.wait_deleted(&book, &before).await;
        } else {
            shelf.wait_reconciled(&name, 1, 2).await;
            shelf.change(&name, json!({"pages": 4})).await.unwrap();
            shelf.wait_reconciled(&name, 2, 4).await;
            assert_not_recreated(&before, &shelf.pages(&name).await);
        }
        operator.kill().await;
    }
}
