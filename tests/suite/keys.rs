//! The hashes of keys, checked against docs/FORMAT.md by the crate `wyhash`, and the other promises of keys.

use bloomline::{BloomFilter, Key, KeyHasher};
use proptest::prelude::*;
use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::num::NonZero;
use std::rc::Rc;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

const SEED: u64 = 0x0123_4567_89AB_CDEF;

/// The hash of a key under [`SEED`].
fn hash<K: Key + ?Sized>(key: &K) -> u64 {
    static HASHER: LazyLock<KeyHasher> = LazyLock::new(|| KeyHasher::new(SEED));
    key.hash_with(&HASHER)
}

/// The secret for [`SEED`] by the function of docs/FORMAT.md. The crate's function makes another one on 32 bits.
const SECRET: [u64; 4] = [0x6A3C_8E47_1BC5_0F33, 0xC696_B8C6_B45A_C517, 0x65E4_7463_AA74_53C3, 0x5327_CA2D_E196_7127];

#[cfg(target_pointer_width = "64")]
#[test]
fn the_secret_matches_the_crate_on_64_bits() {
    assert_eq!(SECRET, wyhash::final3::make_secret(SEED));
}

/// H of the specification.
fn h(bytes: &[u8]) -> u64 {
    wyhash::final3::wyhash(bytes, SEED, SECRET)
}

/// Combines two hashes into one, and three and more from the left.
fn chain<const N: usize>(hashes: [u64; N]) -> u64 {
    hashes.into_iter().reduce(|x, y| h(&[x.to_le_bytes(), y.to_le_bytes()].concat())).unwrap()
}

/// The hash of a length.
fn n(length: u64) -> u64 {
    h(&length.to_le_bytes())
}

/// Code in the style of the documentation, with the standard trait in scope too.
mod beside_the_standard_hash {
    use bloomline::{Key, KeyHasher};
    use std::hash::{DefaultHasher, Hash, Hasher};

    #[derive(Hash)]
    struct Page {
        host: String,
        path: String,
    }

    impl Key for Page {
        fn hash_with(&self, hasher: &KeyHasher) -> u64 {
            (&self.host, &self.path).hash_with(hasher)
        }
    }

    #[test]
    fn key_works_beside_the_standard_hash() {
        let page = Page { host: "example.org".into(), path: "/".into() };
        let mut standard = DefaultHasher::new();
        page.hash(&mut standard);
        page.host.hash(&mut standard);
        assert_ne!(standard.finish(), 0);
        let hasher = KeyHasher::new(1);
        assert_eq!(page.hash_with(&hasher), ("example.org", "/").hash_with(&hasher));
    }
}

/// The two hashes that docs/FORMAT.md gives as examples.
#[test]
fn hashes_match_the_specification() {
    let hasher = KeyHasher::new(0);
    assert_eq!("bloom".hash_with(&hasher), 0x6E38_4F9D_7E12_5275);
    assert_eq!(42u32.hash_with(&hasher), 0xA043_4C27_D6F1_8DE5);
}

#[test]
fn bytes_and_text_hash_as_specified() {
    for length in [0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100] {
        let bytes: Vec<u8> = (0..length).collect();
        let text = String::from_utf8(bytes.clone()).unwrap();
        let expected = h(&bytes);
        assert_eq!(hash(&bytes[..]), expected);
        assert_eq!(hash(&bytes), expected);
        assert_eq!(hash(&text), expected);
        assert_eq!(hash(&text[..]), expected);
    }
    assert_eq!(hash(&[1u8, 2, 3, 4]), h(&[1, 2, 3, 4]));
    assert_eq!(hash(&[0u8; 0]), h(&[]));
    assert_eq!(hash("größer"), h("größer".as_bytes()));
}

#[test]
fn numbers_hash_as_specified() {
    macro_rules! numbers {
        ($($type:ty),*) => {$(
            for number in [<$type>::MIN, <$type>::MAX, 0, 1, 99] {
                assert_eq!(hash(&number), h(&number.to_le_bytes()));
                if let Some(nonzero) = NonZero::new(number) {
                    assert_eq!(hash(&nonzero), h(&number.to_le_bytes()));
                }
            }
        )*};
    }
    numbers!(u8, u16, u32, u64, u128, i8, i16, i32, i64, i128);
    assert_eq!(hash(&usize::MAX), h(&(usize::MAX as u64).to_le_bytes()));
    assert_eq!(hash(&-2isize), h(&(-2i64).to_le_bytes()));
    assert_eq!(hash(&NonZero::new(7usize).unwrap()), h(&[7, 0, 0, 0, 0, 0, 0, 0]));
    assert_eq!(hash(&NonZero::new(-1isize).unwrap()), h(&[0xFF; 8]));
    assert_eq!([hash(&false), hash(&true)], [h(&[0]), h(&[1])]);
    assert_eq!([hash(&'a'), hash(&'€')], [h(&[0x61, 0, 0, 0]), h(&[0xAC, 0x20, 0, 0])]);
}

#[test]
fn addresses_hash_as_specified() {
    let (v4, v6) = (Ipv4Addr::new(192, 0, 2, 7), "2001:db8::102:f0ff".parse::<Ipv6Addr>().unwrap());
    assert_eq!([hash(&v4), hash(&IpAddr::from(v4))], [h(&[192, 0, 2, 7]); 2]);
    let bytes = [0x20, 0x01, 0x0D, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0x01, 0x02, 0xF0, 0xFF];
    assert_eq!([hash(&v6), hash(&IpAddr::from(v6))], [h(&bytes); 2]);
    assert_ne!(hash(&v4.to_ipv6_mapped()), hash(&v4));

    let socket = chain([h(&[192, 0, 2, 7]), h(&[0x90, 0x1F])]); // port 8080
    assert_eq!([hash(&SocketAddrV4::new(v4, 8080)), hash(&SocketAddr::from((v4, 8080)))], [socket; 2]);
    let socket = chain([h(&bytes), h(&[0x90, 0x1F])]);
    // The flow label and the scope are not part of the key.
    assert_eq!([hash(&SocketAddrV6::new(v6, 8080, 1, 2)), hash(&SocketAddr::from((v6, 8080)))], [socket; 2]);
}

#[test]
fn durations_hash_as_specified() {
    let expected = chain([h(&[2, 0, 0, 0, 0, 0, 0, 0]), h(&[1, 0, 0, 0])]);
    assert_eq!(hash(&Duration::new(2, 1)), expected);
}

#[test]
fn options_hash_as_specified() {
    assert_eq!(hash(&None::<u64>), h(&[0]));
    assert_eq!(hash(&Some("key")), chain([h(&[1]), h(b"key")]));
    assert_eq!(hash(&Some(None::<bool>)), chain([h(&[1]), h(&[0])]));
    assert!((0..=u16::MAX).all(|x| hash(&Some(x)) != hash(&None::<u16>)));
    assert!((0..=u8::MAX).all(|x| hash(&Some([x])) != hash(&None::<[u8; 1]>)));
}

#[test]
fn tuples_hash_as_specified() {
    let hashes: [u64; 12] = std::array::from_fn(|i| h(&[i as u8]));
    let first = |n: usize| hashes[1..n].iter().fold(hashes[0], |hash, &next| chain([hash, next]));
    assert_eq!(hash(&(0u8,)), first(1));
    assert_eq!(hash(&(0u8, 1u8)), first(2));
    assert_eq!(hash(&(0u8, 1u8, 2u8)), first(3));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8)), first(4));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8)), first(5));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8)), first(6));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8)), first(7));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8)), first(8));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8)), first(9));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8, 9u8)), first(10));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8, 9u8, 10u8)), first(11));
    assert_eq!(hash(&(0u8, 1u8, 2u8, 3u8, 4u8, 5u8, 6u8, 7u8, 8u8, 9u8, 10u8, 11u8)), first(12));
    assert_eq!(hash(&("a", 1u32, b"bc")), chain([h(b"a"), h(&[1, 0, 0, 0]), h(b"bc")]));
}

#[test]
fn sequences_hash_as_specified() {
    let expected = chain([n(3), h(&[1, 0]), h(&[2, 0]), h(&[3, 0])]);
    assert_eq!(hash(&[1u16, 2, 3]), expected);
    assert_eq!(hash(&[1u16, 2, 3][..]), expected);
    assert_eq!(hash(&vec![1u16, 2, 3]), expected);
    assert_eq!(hash(&[0u64; 0]), n(0));
    assert_eq!(hash(&["a", "bc"]), chain([n(2), h(b"a"), h(b"bc")]));
    assert_eq!(hash(&[-1i8, 0]), chain([n(2), h(&[0xFF]), h(&[0])]), "only a sequence of u8 is a byte string");
    assert_eq!(hash(&[true]), chain([n(1), h(&[1])]));
    assert_eq!(hash(&[Some(5u8), None]), chain([n(2), chain([h(&[1]), h(&[5])]), h(&[0])]));

    // Without their lengths these would have equal hashes.
    let split = |parts: [&[u32]; 2]| [hash(&(parts[0], parts[1])), hash(&parts)];
    assert_eq!(split([&[1], &[2, 3]])[1], chain([n(2), hash(&[1u32]), hash(&[2u32, 3])]));
    for (one, other) in split([&[1], &[2, 3]]).into_iter().zip(split([&[1, 2], &[3]])) {
        assert_ne!(one, other);
    }
    assert_ne!(hash(&[[0u32; 0]; 1]), hash(&[[0u32; 0]; 2]));
}

#[test]
fn paths_hash_as_specified() {
    use std::ffi::{OsStr, OsString};
    use std::path::{Path, PathBuf};
    let path = "/größer//a/./b/";
    let expected = h(path.as_bytes());
    assert_eq!(hash(OsStr::new(path)), expected);
    assert_eq!(hash(&OsString::from(path)), expected);
    assert_eq!(hash(Path::new(path)), expected);
    assert_eq!(hash(&PathBuf::from(path)), expected);
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        assert_eq!(hash(Path::new(OsStr::from_bytes(b"no \xFF text"))), h(b"no \xFF text"));
    }
    // One `Path` in two spellings, and the form that the documentation names.
    let same = Path::new(if cfg!(windows) { r"\größer\a\b" } else { "/größer/a/b" });
    assert!(same == Path::new(path) && hash(same) != expected);
    assert_eq!(hash(&Path::new(path).components().collect::<PathBuf>()), hash(same));
}

/// A file written from the specification has keys of all types except those of tests/suite/file/vectors.rs.
#[test]
fn keys_in_a_file_are_found() {
    let mut filter: BloomFilter = BloomFilter::builder().memory(40 * 64).probes(8).seed(2).build().unwrap();
    filter.extend([false, true]);
    filter.insert(&None::<String>);
    filter.insert(&[0i32; 0]);
    for i in 0..100u8 {
        let (text, wide) = (i.to_string(), [0, 1, 2].map(|more| u16::from(i) + more));
        filter.insert(&char::from_u32(0x20AC + u32::from(i)).unwrap());
        filter.insert(&Ipv4Addr::new(192, 0, 2, i));
        filter.insert(&IpAddr::from(Ipv6Addr::new(0x2001, 0xDB8, 0, 0, 0, 0, 0, i.into())));
        filter.insert(std::path::Path::new(&format!("/größer//{i}")));
        filter.insert(&(i, i, i, i));
        filter.insert(&(i, i, i, i, i, i, i, i, i, i, i, &text));
        filter.insert(&wide);
        filter.insert(&vec![&text; usize::from(i) % 5]);
        filter.insert(&Some(&text));
        filter.insert(&[&wide[..1], &wide[1..]]);
        filter.insert(&(&wide[..2], &wide[2..]));
        filter.insert(&[Some(i), None]);
    }
    let loaded = BloomFilter::load(format!("{}/../data/keys.bloom", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(loaded == filter);
}

/// The hashes of a key behind every kind of pointer.
fn behind_pointers<K: Key + ToOwned + ?Sized>(key: &K) -> Vec<u64>
where
    Box<K>: for<'a> From<&'a K>,
    Rc<K>: for<'a> From<&'a K>,
    Arc<K>: for<'a> From<&'a K>,
    K::Owned: Key,
{
    let mut boxed: Box<K> = Box::from(key);
    vec![
        hash(&key),
        hash(&&key),
        hash(&&mut *boxed),
        hash(&boxed),
        hash(&Rc::<K>::from(key)),
        hash(&Arc::<K>::from(key)),
        hash(&Cow::Borrowed(key)),
        hash(&Cow::<K>::Owned(key.to_owned())),
        hash(&key.to_owned()),
    ]
}

proptest! {
    #[test]
    fn equal_keys_have_equal_hashes(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        numbers in prop::collection::vec(any::<i32>(), 0..20),
        texts in prop::collection::vec(prop::option::of("\\PC*"), 0..5),
    ) {
        let equal = |hashes: Vec<u64>, expected| hashes.into_iter().all(|hash| hash == expected);
        prop_assert!(equal(behind_pointers(&bytes[..]), h(&bytes)));
        prop_assert!(equal(behind_pointers(&numbers[..]), hash(&numbers)));
        prop_assert!(equal(behind_pointers(&texts[..]), hash(&texts)));
        for text in texts.iter().flatten() {
            prop_assert!(equal(behind_pointers(&text[..]), h(text.as_bytes())));
        }
        // Pointers inside.
        let behind: Vec<_> = texts.iter().map(|text| text.as_ref().map(|text| Rc::new(Box::new(&text[..])))).collect();
        prop_assert_eq!(hash(&behind), hash(&texts));
        let behind = (Arc::new(&numbers), Cow::Borrowed(&bytes[..]));
        prop_assert_eq!(hash(&behind), hash(&(numbers, bytes)));
    }

    #[test]
    fn sequences_of_any_length_hash_as_specified(numbers in prop::collection::vec(any::<u32>(), 0..50)) {
        let length = n(numbers.len() as u64);
        let expected = numbers.iter().fold(length, |hash, number| chain([hash, h(&number.to_le_bytes())]));
        prop_assert_eq!(hash(&numbers), expected);
    }

    #[test]
    fn different_sequences_have_different_hashes(a in prop::collection::vec(0..2u16, 0..4), b in prop::collection::vec(0..2u16, 0..4)) {
        prop_assert_eq!(a == b, hash(&a) == hash(&b));
    }
}

/// `impl_key!`: the named fields are hashed as the tuple of them.
mod structs {
    use super::*;
    use bloomline::impl_key;

    struct Page {
        host: String,
        path: String,
        #[allow(dead_code, reason = "not a part of the key")]
        fetched: u64,
    }
    impl_key!(Page { host, path });

    struct Cell(i32, i32);
    impl_key!(Cell { 0, 1 });

    struct Name<'a> {
        name: &'a str,
    }
    impl_key!(Name<'_> { name });

    mod inner {
        pub struct Row<K>(pub [K; 2], pub Option<bool>);
    }
    impl_key!(inner::Row<u16> { 1, 0, });

    #[test]
    fn fields_hash_like_their_tuple() {
        let page = |fetched| Page { host: "example.org".into(), path: "/".into(), fetched };
        assert_eq!(hash(&page(1)), chain([h(b"example.org"), h(b"/")]));
        assert_eq!(hash(&page(1)), hash(&page(2)));
        assert_eq!(hash(&Cell(-1, 2)), chain([h(&[0xFF; 4]), h(&[2, 0, 0, 0])]));
        assert_eq!(hash(&Name { name: "n" }), h(b"n"));
        assert_eq!(hash(&inner::Row([1, 2], None)), chain([h(&[0]), hash(&[1u16, 2])]));
        assert_eq!(hash(&[page(1), page(2)]), chain([n(2), hash(&page(1)), hash(&page(1))]));
    }
}

/// `WithinBuild`: any `Hash` as a key.
mod within_build {
    use super::*;
    use bloomline::WithinBuild;
    use std::collections::{BTreeMap, HashSet};
    use std::hash::Hash;

    fn hash<T: Hash>(value: T) -> u64 {
        super::hash(&WithinBuild::new(value))
    }

    #[derive(Clone, PartialEq, Hash)]
    enum Shape {
        Point,
        Circle { radius: u32 },
        Text(String, Vec<u16>),
    }

    #[test]
    fn short_strings_and_tuples_have_different_hashes() {
        let (mut hashes, mut keys) = (HashSet::new(), 0);
        let mut add = |hash| {
            keys += 1;
            assert!(hashes.insert(hash));
        };
        for a in 0..=255u8 {
            add(hash([a]));
            add(hash(a));
            for b in 0..=255u8 {
                add(hash([a, b]));
                add(hash((a, b)));
                add(hash((a, b, 0u8)));
                add(hash(([a], [b], [0u8])));
            }
        }
        add(hash(""));
        add(hash(("", "")));
        add(hash(("ab", "c")));
        add(hash(("a", "bc")));
        add(hash(("abc", "")));
        add(hash((vec![1u8], vec![2u8, 3])));
        add(hash((vec![1u8, 2], vec![3u8])));
        add(hash(()));
        for radius in 0..1000 {
            add(hash(Shape::Circle { radius }));
        }
        add(hash(Shape::Point));
        add(hash(Shape::Text("a".into(), vec![1])));
        add(hash(Shape::Text("a".into(), vec![1, 0])));
        assert_eq!(hashes.len(), keys);
    }

    #[test]
    fn equal_values_are_one_key() {
        let map = |pairs: &[(u32, &str)]| pairs.iter().map(|&(k, v)| (k, v.to_owned())).collect::<BTreeMap<_, _>>();
        let (one, other) = (map(&[(1, "a"), (2, "b")]), map(&[(2, "b"), (1, "a")]));
        assert_eq!(hash(&one), hash(other));
        assert_eq!(hash(&one), hash(Box::new(one.clone())));
        assert_eq!(hash("text"), hash("text".to_owned()));
        let text = Shape::Text("t".into(), vec![7]);
        assert_eq!(hash(&text), hash(text.clone()));
    }

    #[test]
    fn the_hash_depends_on_the_seed() {
        let [one, other] = [1, 2].map(|seed| WithinBuild::new(("a", 1)).hash_with(&KeyHasher::new(seed)));
        assert_ne!(one, other);
    }
}
