//! Tests of examining, exporting and repairing databases.

use portico_store::{Doctor, Finding, MetadataIndexer, OpenError};

use crate::harness::*;
use crate::unreadable::{damage, execute};

async fn filled(backend: &Sqlite) {
    let store = backend.open().await;
    for name in 0..4 {
        put(&*store, &key(&format!("a/{name}")), "old").await;
        let change =
            portico_store::Change::Put(value_with_owners(&key(&format!("a/{name}")), "new", &["owner"]));
        let txn = portico_store::Txn::single(
            key(&format!("a/{name}")),
            portico_store::Precondition::Exists,
            change,
        );
        commit(&*store, txn).await.unwrap();
    }
    delete(&*store, &key("a/3")).await;
    store.close().await;
}

async fn findings(backend: &Sqlite) -> Vec<String> {
    let examined = Doctor::new(backend.path(), &MetadataIndexer).examine().await.unwrap();
    examined.findings.iter().map(Finding::to_string).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_intact_database_has_no_findings_whether_served_or_not() {
    let backend = Sqlite::new();
    filled(&backend).await;
    let doctor = |path| Doctor::new(path, &MetadataIndexer);
    let examined = doctor(backend.path()).examine().await.unwrap();
    assert!(examined.is_sound(), "{:?}", examined.findings);
    assert_eq!((examined.objects, examined.states, examined.revision), (3, 9, 10));
    let store = backend.open().await;
    assert!(doctor(backend.path()).examine().await.unwrap().is_sound());
    let used = doctor(backend.path()).remove_unreadable().await;
    assert!(matches!(used, Err(OpenError::InUse { .. })));
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unreadable_objects_are_reported_omitted_and_removed() {
    let backend = Sqlite::new();
    filled(&backend).await;
    damage(&backend, "1", "x'09'").await;
    let text = "unreadable: configmaps/a/1 at revision 5: unknown value format 9";
    assert_eq!(findings(&backend).await, [text]);
    let doctor = Doctor::new(backend.path(), &MetadataIndexer);
    let mut exported = Vec::new();
    let end = doctor
        .export(|record| {
            exported.push(format!("{}={}", record.key.path(), crate::harness::text(record)));
            Ok(())
        })
        .await
        .unwrap();
    let left_out = end.unreadable;
    assert_eq!((exported, end.lost, end.damage), (vec!["a/0=new".to_owned(), "a/2=new".to_owned()], 0, None));
    assert_eq!(left_out, 1);
    let removed = doctor.remove_unreadable().await.unwrap();
    assert_eq!(removed.iter().map(|object| object.key().clone()).collect::<Vec<_>>(), [key("a/1")]);
    assert_eq!(findings(&backend).await, Vec::<String>::new());
    assert!(doctor.remove_unreadable().await.unwrap().is_empty());
    // The earlier state does not reappear, and its watchers must list again.
    let store = backend.open().await;
    assert_eq!(store.identity().epoch, 2);
    let snapshot = store.snapshot(&config_maps()).await.unwrap();
    assert_eq!(lines(snapshot.iter()), ["a/0@3=new", "a/2@7=new"]);
    assert_eq!(store.dependents("owner").await.unwrap(), [key("a/0"), key("a/2")]);
    assert!(store.watch(portico_store::Scope::all(&config_maps()), 10).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn inconsistencies_are_found() {
    for (sql, text) in [
        ("UPDATE meta SET revision = 9", "inconsistent: 1 states are newer than the store's revision"),
        ("DELETE FROM resource", "inconsistent: 9 states belong to no resource"),
        (
            "UPDATE log SET previous = 2 WHERE revision = 7",
            "inconsistent: 1 states follow a state of another object",
        ),
        (
            "DELETE FROM owner WHERE name = '1'",
            "inconsistent: configmaps/a/1 has the owner owner, which is missing from the index",
        ),
        (
            "INSERT INTO owner SELECT 'other', resource, namespace, name FROM owner WHERE name = '1'",
            "inconsistent: configmaps/a/1 is indexed as a dependent of other, which is not its owner",
        ),
        (
            "UPDATE owner SET name = 'x' WHERE name = '1'",
            "inconsistent: 1 objects are indexed as dependents but do not exist",
        ),
    ] {
        let backend = Sqlite::new();
        filled(&backend).await;
        execute(&backend, sql).await;
        let found = findings(&backend).await;
        assert!(found.iter().any(|finding| finding == text), "{sql}: {found:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_past_state_that_cannot_be_read_and_a_damaged_page_are_distinguished() {
    let backend = Sqlite::new();
    filled(&backend).await;
    execute(&backend, "UPDATE log SET value = x'09' WHERE revision = 2").await;
    let text = "unreadable past state: configmaps/a/0 at revision 2: unknown value format 9";
    assert_eq!(findings(&backend).await, [text]);
    Doctor::new(backend.path(), &MetadataIndexer).remove_unreadable().await.unwrap();
    assert_eq!(findings(&backend).await, Vec::<String>::new());
    // Overwrites the last page of the file.
    let mut bytes = std::fs::read(backend.path()).unwrap();
    let last = bytes.len() - 4096;
    bytes[last..].fill(0x5a);
    std::fs::write(backend.path(), bytes).unwrap();
    let found = findings(&backend).await;
    assert!(found.iter().any(|finding| finding.starts_with("damaged: ")), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removing_objects_from_an_older_copy_does_not_make_it_the_served_database() {
    let backend = Sqlite::new();
    filled(&backend).await;
    let copy = backend.path().with_file_name("copy");
    std::fs::copy(backend.path(), &copy).unwrap();
    let store = backend.open().await;
    put(&*store, &key("a/9"), "shown").await;
    store.close().await;
    drop(store);
    std::fs::copy(&copy, backend.path()).unwrap();
    damage(&backend, "1", "x'09'").await;
    let refused = Doctor::new(backend.path(), &MetadataIndexer).remove_unreadable().await;
    assert!(matches!(&refused, Err(OpenError::Replaced { .. })), "{refused:?}");
    let unreadable = "unreadable: configmaps/a/1 at revision 5: unknown value format 9";
    assert!(findings(&backend).await.iter().any(|finding| finding == unreadable));
    assert!(matches!(backend.try_open(&|_| ()).await, Err(OpenError::Replaced { .. })));
}

/// Returns the newest state of each object that an export passes on.
async fn exported(
    backend: &Sqlite,
) -> (std::collections::BTreeMap<String, String>, portico_store::ExportSummary) {
    let mut found = std::collections::BTreeMap::new();
    let doctor = Doctor::new(backend.path(), &MetadataIndexer);
    let take = |record: &portico_store::Record| {
        let twice = found.insert(record.key.path().to_owned(), text(record));
        assert_eq!(twice, None);
        Ok(())
    };
    let end = doctor.export(take).await.unwrap();
    (found, end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_outside_of_damaged_pages_are_exported_and_lost_ones_are_counted() {
    const OBJECTS: usize = 300;
    const PAGE: usize = 4096;
    let backend = Sqlite::new();
    let store = backend.open().await;
    for n in 0..OBJECTS {
        put(&*store, &key(&format!("a/{n:03}")), &"old ".repeat(40)).await;
    }
    for n in (0..OBJECTS).step_by(2) {
        put(&*store, &key(&format!("a/{n:03}")), &"new ".repeat(40)).await;
    }
    delete(&*store, &key("a/007")).await;
    store.close().await;
    let (all, end) = exported(&backend).await;
    assert_eq!((all.len(), end), (OBJECTS - 1, portico_store::ExportSummary::default()));
    let whole = std::fs::read(backend.path()).unwrap();
    let (pages, mut damaged, mut incomplete) = (whole.len() / PAGE, 0, 0);
    assert!(pages > 20, "{pages}");
    // Page 0 has the format of the file. Each other page is damaged alone, and together with the next but one.
    for (page, other) in
        (1..pages).map(|page| (page, page)).chain((1..pages - 2).map(|page| (page, page + 2)))
    {
        let mut bytes = whole.clone();
        for page in [page, other] {
            bytes[page * PAGE..(page + 1) * PAGE].fill(0x5a);
        }
        std::fs::write(backend.path(), bytes).unwrap();
        let (found, end) = exported(&backend).await;
        damaged += usize::from(end.damage.is_some());
        incomplete += usize::from(found.len() < all.len());
        let lost = usize::try_from(end.lost).unwrap();
        assert!(end.damage.is_some() || found == all, "page {page}: {}", found.len());
        // Without its root page, a whole table is lost.
        let is_root = found.is_empty();
        assert!(is_root || found.len() > OBJECTS / 2, "page {page}: {} of {}", found.len(), all.len());
        if page == other {
            assert_eq!(
                found.len() + lost + usize::try_from(end.unreadable).unwrap(),
                all.len(),
                "page {page}"
            );
            assert!(found.iter().all(|(name, text)| all.get(name) == Some(text)), "page {page}");
        }
    }
    assert!(damaged > 20 && incomplete > 10 && incomplete < damaged, "{damaged} {incomplete}");
}
