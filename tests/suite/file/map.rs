//! Filters in files that are mapped.

use super::*;

fn map(path: &Path) -> Result<BorrowedBloomFilter<'static>, FileError> {
    // SAFETY: tests have folders of their own, and do not change a file while it is mapped.
    unsafe { BloomFilter::map(path) }
}

#[test]
fn a_mapped_filter_answers_like_the_loaded_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    for filter in borrowed::filters() {
        filter.save(&path).unwrap();
        borrowed::check_alike(&map(&path).unwrap(), &filter);
    }
}

// Windows does not replace a file that is mapped.
#[cfg(not(windows))]
#[test]
fn a_save_does_not_change_a_mapped_filter() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    let (old, new) = (filter(1000, 8, 5, 100), filter(10, 8, 5, 0));
    old.save(&path).unwrap();
    let mapped = map(&path).unwrap();
    new.save(&path).unwrap();
    assert!(*mapped == old);
    assert!(*map(&path).unwrap() == new);
}

#[test]
fn unsound_files_are_refused_or_found_by_verify() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("filter.bloom");
    // With fields.
    let good = bytes_of!(&specs()[0]);
    for byte in 0..good.len() {
        let mut bytes = good.clone();
        bytes[byte] ^= 1 << (byte % 8);
        fs::write(&path, &bytes).unwrap();
        let error = map(&path).and_then(|mapped| mapped.verify()).unwrap_err();
        assert_eq!(error.to_string(), BloomFilter::load(&path).unwrap_err().to_string());
    }
    for length in (0..good.len()).chain([good.len() + 1]) {
        let bytes: Vec<u8> = good.iter().copied().chain([0]).take(length).collect();
        fs::write(&path, bytes).unwrap();
        assert_eq!(map(&path).unwrap_err().to_string(), BloomFilter::load(&path).unwrap_err().to_string());
    }
    let error = map(folder.path()).unwrap_err();
    assert_eq!(io_kind(&error), IS_A_FOLDER, "{error:?}");
}
