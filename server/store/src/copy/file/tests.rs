//! Tests that a backup is read back unchanged, and that truncated, changed, missing or additional content is detected.

use proptest::prelude::*;

use super::*;
use crate::copy::archive::{ArchivedState, RevisionGap, TimeMark};
use crate::key::Resource;

fn header() -> Header {
    Header { store_id: "s".to_owned(), epoch: 3, revision: i64::MAX, created_at: 7, portico: "0".to_owned() }
}

fn write_backup(pages: &[Vec<StoredState>]) -> Vec<u8> {
    let mut writer = BackupWriter::begin(Vec::new(), &header(), false).unwrap();
    pages.iter().for_each(|page| writer.add(page.clone()).unwrap());
    writer.end().unwrap().0
}

/// Like [`written`], with an archive.
fn write_backup_with_archive(pages: &[Vec<StoredState>], parts: &[ArchivePart]) -> Vec<u8> {
    let mut writer = BackupWriter::begin(Vec::new(), &header(), true).unwrap();
    pages.iter().for_each(|page| writer.add(page.clone()).unwrap());
    parts.iter().for_each(|part| writer.add_archive(part.clone()).unwrap());
    writer.end().unwrap().0
}

/// Returns all states and the result of reading to the end.
fn read(bytes: &[u8]) -> (Vec<StoredState>, Result<(), FormatError>) {
    let (states, _, ended) = read_all(bytes);
    (states, ended)
}

/// Returns all states, all past states, and the result of reading to the end.
fn read_all(bytes: &[u8]) -> (Vec<StoredState>, Vec<ArchivePart>, Result<(), FormatError>) {
    let (mut states, mut parts) = (Vec::new(), Vec::new());
    let mut backup = match BackupFile::read(bytes) {
        Ok(backup) => backup,
        Err(error) => return (states, parts, Err(error)),
    };
    assert_eq!(backup.header(), &header());
    loop {
        match backup.next_part() {
            Ok(Some(BackupPart::States(page))) => states.extend(page),
            Ok(Some(BackupPart::Archive(part))) => parts.push(part),
            Ok(None) => return (states, parts, Ok(())),
            Err(error) => return (states, parts, Err(error)),
        }
    }
}

fn state(name: &str, revision: i64) -> StoredState {
    StoredState {
        key: Key::new(&Resource::new("apps", "deployments"), "a", name),
        revision,
        uid: format!("uid of {name}"),
        previous: revision - 1,
        deleted: false,
        value: [b"\x01", name.as_bytes()].concat(),
        owners: Some(vec!["o".to_owned()]),
    }
}

fn small_backup() -> (Vec<StoredState>, Vec<u8>) {
    let pages = [vec![state("a", 1), state("b", 2)], vec![state("c", 9)]];
    (pages.concat(), write_backup(&pages))
}

prop_compose! {
    fn any_state()(
        resource in "[a-c]{0,2}", namespace in "[^/]{0,3}", name in "[^/]{1,6}",
        revision in 1..i64::MAX, uid in ".{0,4}", value in prop::collection::vec(any::<u8>(), 1..40),
        owners in prop::collection::vec(".{0,4}", 0..3), age in 0..i64::MAX,
    ) -> StoredState {
        let key = Key::new(&Resource::new("", resource), &namespace, &name);
        let previous = age % revision;
        StoredState { key, revision, uid, previous, deleted: false, value, owners: Some(owners) }
    }
}

proptest! {
    #[test]
    fn a_backup_is_read_back_unchanged(mut states in prop::collection::vec(any_state(), 0..60), page in 1..9_usize) {
        states.sort_by(|a, b| a.key.cmp(&b.key));
        states.dedup_by(|a, b| a.key == b.key);
        let pages: Vec<_> = states.chunks(page).map(<[_]>::to_vec).collect();
        let (found, ended) = read(&write_backup(&pages));
        prop_assert!(ended.is_ok(), "{ended:?}");
        prop_assert_eq!(found, states);
    }

    #[test]
    fn foreign_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), begins in any::<bool>()) {
        let bytes = if begins { [b"PORTICO-BACKUP 1\n", &*bytes].concat() } else { bytes };
        let (states, ended) = read(&bytes);
        prop_assert!(states.is_empty() && ended.is_err());
    }

    #[test]
    fn a_file_with_reordered_blocks_is_rejected(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..30_usize), 1..4),
    ) {
        let (states, whole) = small_backup();
        let mut bytes = whole.clone();
        for (from, to, length) in edits {
            let (from, to) = (from.index(bytes.len()), to.index(bytes.len()));
            let part: Vec<u8> = bytes[from..].iter().take(length).copied().collect();
            bytes.splice(to..(to + length / 2).min(bytes.len()), part);
        }
        let (found, ended) = read_leniently(&bytes);
        prop_assert!(states.starts_with(&found), "the read states are a prefix of the written ones");
        prop_assert_eq!(ended.is_ok(), bytes == whole);
    }
}

/// Reads like [`read`] data whose header may be invalid.
fn read_leniently(bytes: &[u8]) -> (Vec<StoredState>, Result<(), FormatError>) {
    match BackupFile::read(bytes) {
        Ok(_) => read(bytes),
        Err(error) => (Vec::new(), Err(error)),
    }
}

#[test]
fn every_truncation_is_detected_and_only_written_states_are_returned() {
    let (states, whole) = small_backup();
    for length in 0..whole.len() {
        let (found, ended) = read(&whole[..length]);
        assert!(states.starts_with(&found), "{length}");
        let error = ended.unwrap_err();
        // A file truncated within its first line may have any format.
        let is_named = matches!(error, FormatError::Truncated { .. } | FormatError::Foreign);
        assert!(is_named, "{length}: {error}");
    }
    assert!(
        matches!(read(&whole[..whole.len() - 1]).1, Err(FormatError::Truncated { at, .. }) if at == whole.len() as u64 - 1)
    );
}

#[test]
fn every_changed_bit_is_detected() {
    let (states, whole) = small_backup();
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let (found, ended) = read(&bytes);
            assert!(ended.is_err() && states.starts_with(&found), "byte {at}, bit {bit}");
        }
    }
}

#[test]
fn added_missing_repeated_and_reordered_blocks_are_detected() {
    let (_, whole) = small_backup();
    assert!(read(&[&*whole, b"x"].concat()).1.unwrap_err().to_string().contains("data after the end"));
    let turned = write_backup(&[vec![state("b", 2)], vec![state("a", 1)]]);
    assert!(read(&turned).1.unwrap_err().to_string().contains("deployments.apps/a/a is out of order"));
    let duplicate = write_backup(&[vec![state("a", 2), state("a", 3)]]);
    assert!(read(&duplicate).1.unwrap_err().to_string().contains("out of order"));
    let tombstone = StoredState { deleted: true, ..state("a", 2) };
    assert!(
        read(&write_backup(&[vec![tombstone]]))
            .1
            .unwrap_err()
            .to_string()
            .contains("is not a state of revision")
    );
}

#[test]
fn other_formats_are_reported_by_name() {
    for (bytes, expected) in [
        (&b""[..], "not a Portico backup"),
        (b"-- PostgreSQL database dump", "not a Portico backup"),
        (b"SQLite format 3\0 and so on", "a SQLite file, not a portable backup"),
        (
            b"PORTICO-BACKUP 3\n",
            "format version 3 is not supported, this portico supports 2: use a newer portico",
        ),
        (b"PORTICO-BACKUP 01\n", "not a Portico backup"),
        (b"PORTICO-BACKUP 1\n", "truncated at byte 17: no content"),
    ] {
        assert_eq!(read(bytes).1.unwrap_err().to_string(), expected);
    }
    // Rejects a length that exceeds the memory.
    let huge = [b"PORTICO-BACKUP 1\nS", &[0xff; 8][..], &[0; 64]].concat();
    assert!(read(&huge).1.unwrap_err().to_string().contains("invalid block length"));
}

fn past(name: &str, revision: i64, until: i64) -> ArchivedState {
    let StoredState { key, value, .. } = state(name, revision);
    ArchivedState { key, revision, previous: 0, deleted: revision == until, until, value }
}

fn part(states: Vec<ArchivedState>) -> ArchivePart {
    ArchivePart { states, ..ArchivePart::default() }
}

fn contents() -> ArchivePart {
    let since = [(Resource::new("apps", "deployments"), 3)].into_iter().collect();
    let contents = Some(ArchiveContents { since, gaps: vec![RevisionGap { after: 4, until: 90 }] });
    ArchivePart { contents, ..ArchivePart::default() }
}

/// Returns an archive of two objects, one of them deleted, and one time mark.
fn with_archive() -> (Vec<ArchivePart>, Vec<u8>) {
    let marks = ArchivePart { marks: vec![TimeMark { revision: 9, at: 7 }], ..ArchivePart::default() };
    let parts =
        vec![part(vec![past("a", 4, 5), past("d", 3, 6)]), part(vec![past("d", 6, 6)]), marks, contents()];
    let written = write_backup_with_archive(&[vec![state("a", 5)]], &[&[contents()][..], &parts].concat());
    (parts, written)
}

#[test]
fn an_archive_is_read_back_and_a_backup_without_one_has_version_1() {
    let (parts, whole) = with_archive();
    assert!(whole.starts_with(b"PORTICO-BACKUP 2\n") && small_backup().1.starts_with(b"PORTICO-BACKUP 1\n"));
    let (states, found, ended) = read_all(&whole);
    assert!(ended.is_ok(), "{ended:?}");
    assert_eq!((states, found), (vec![state("a", 5)], parts));
}

#[test]
fn a_truncated_or_changed_archive_is_detected_and_only_written_states_are_returned() {
    let (parts, whole) = with_archive();
    for length in 0..whole.len() {
        let (_, found, ended) = read_all(&whole[..length]);
        assert!(parts.starts_with(&found), "{length}");
        assert!(
            matches!(ended, Err(FormatError::Truncated { .. } | FormatError::Foreign)),
            "{length}: {ended:?}"
        );
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        let (_, found, ended) = read_all(&bytes);
        assert!(ended.is_err() && parts.starts_with(&found), "byte {at}");
    }
}

#[test]
fn an_archive_out_of_order_without_end_or_beyond_the_revision_is_rejected() {
    let objects = [vec![state("a", 5)]];
    let first = || part(vec![past("a", 4, 5)]);
    let future = ArchivePart { marks: vec![TimeMark { revision: 0, at: 7 }], ..ArchivePart::default() };
    for (parts, expected) in [
        (vec![], "the archive is incomplete"),
        (vec![contents()], "the archive is incomplete"),
        (vec![contents(), first()], "the archive is incomplete"),
        (vec![first(), contents()], "the archive has no start"),
        (vec![contents(), first(), first(), contents()], "deployments.apps/a/a@4 is out of order"),
        (vec![contents(), contents(), first()], "missing or duplicate archive"),
        (vec![contents(), future, contents()], "the time of revision 0 is out of order"),
        (vec![contents(), part(vec![past("a", 6, 5)]), contents()], "cannot end at 5"),
    ] {
        let error = read_all(&write_backup_with_archive(&objects, &parts)).2.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}: {expected}");
    }
    // Version 1 must not contain an archive.
    let mut writer = BackupWriter::begin(Vec::new(), &header(), false).unwrap();
    writer.add_archive(contents()).unwrap();
    let error = read_all(&writer.end().unwrap().0).2.unwrap_err().to_string();
    assert!(error.contains("missing or duplicate archive"), "{error}");
}
