//! Keys.

/// In the style that the documentation shows, with the standard trait in scope too.
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
    fn both_traits_are_in_scope() {
        let page = Page { host: "example.org".into(), path: "/".into() };
        let mut standard = DefaultHasher::new();
        page.hash(&mut standard);
        page.host.hash(&mut standard);
        assert_ne!(standard.finish(), 0);
        let hasher = KeyHasher::new(1);
        assert_eq!(page.hash_with(&hasher), ("example.org", "/").hash_with(&hasher));
    }
}
