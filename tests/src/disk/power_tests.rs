//! Tests of power.rs: synced data exists after a power loss.

use super::*;
use rand::SeedableRng;

const JOURNAL: &str = "create\t5\tnew\nsync\t\t\ncreate\t6\tlate\nrename\tnew\told\nunlink\tother\t\n";
const NAMES: &str = "1\told\n2\tother\n";

fn names(entries: &[(&str, u64)]) -> Names {
    entries.iter().map(|(path, number)| (PathBuf::from(path), *number)).collect()
}

#[test]
fn synced_names_survive_and_later_changes_are_lost_backwards() {
    let mut random = StdRng::seed_from_u64(1);
    let synced = names(&[("old", 1), ("other", 2), ("new", 5)]);
    let everything = names(&[("old", 5), ("late", 6)]);
    let (nothing, last, lost) = names_after(NAMES, JOURNAL, Survival::Nothing, &mut random);
    assert_eq!((nothing, last, lost), (synced.clone(), everything.clone(), 3));
    let (all, _, lost) = names_after(NAMES, JOURNAL, Survival::Everything, &mut random);
    assert_eq!((all, lost), (everything.clone(), 0));
    let late = names(&[("old", 1), ("other", 2), ("new", 5), ("late", 6)]);
    let renamed = names(&[("old", 5), ("other", 2), ("late", 6)]);
    let mut seen = Vec::new();
    for _ in 0..200 {
        let (durable, _, _) = names_after(NAMES, JOURNAL, Survival::Some, &mut random);
        assert!([&synced, &late, &renamed, &everything].contains(&&durable), "{durable:?}");
        seen.push(durable);
    }
    assert!(seen.contains(&synced) && seen.contains(&everything));
}

#[test]
fn each_sector_is_the_synced_or_the_written_one() {
    let mut random = StdRng::seed_from_u64(1);
    let (synced, written) = (vec![1; 8 * SECTOR], vec![2; 8 * SECTOR + 100]);
    let (mut mixed, mut sizes, mut lost) = (false, std::collections::BTreeSet::new(), 0);
    for _ in 0..50 {
        let content = tear(&synced, &written, Survival::Some, &mut random, &mut lost);
        for sector in content[..8 * SECTOR].chunks(SECTOR) {
            assert!(sector.iter().all(|byte| byte == &sector[0]));
        }
        mixed |= content[..8 * SECTOR].contains(&1) && content[..8 * SECTOR].contains(&2);
        sizes.insert(content.len());
    }
    assert!(mixed && lost > 0);
    assert_eq!(sizes.into_iter().collect::<Vec<_>>(), [8 * SECTOR, 8 * SECTOR + 100]);
    assert_eq!(tear(&synced, &written, Survival::Nothing, &mut random, &mut lost), synced);
    assert_eq!(tear(&synced, &written, Survival::Everything, &mut random, &mut lost), written);
}
