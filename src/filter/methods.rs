//! The methods of the filter types, written once for all of them.
//!
//! ```text
//! constructors      new, builder
//! insert_methods    insert, insert_batch, their hashes; par_insert_method: on all cores
//! query_methods     contains, contains_batch, their hashes, prefetch_hash, prune_bitmap, par_contains
//! info_methods      a filter's parameters and figures, populate, clear
//! capacity_methods  probes, capacity and expected_fpr, of a filter of one size
//! file_methods      save, load, write_to and the like; with them serde
//! collect_impls     Extend, FromIterator; par_collect_impls: on all cores
//! trait_impls       the trait Filter, Debug, and the way from a builder
//! ```
//!
//! Each type is a struct around its implementation, which has methods of the same names. tests/suite/pages.rs has the table of
//! the methods of each type.

/// `new` and `builder`. Each type documents its own `new`.
macro_rules! constructors {
    ($path:literal, $(#[$new:meta])*) => {
        $(#[$new])*
        ///
        /// # Errors
        /// [`BuildError`](crate::BuildError): no keys, a rate that is not between 0 and 1 or that 64-bit hashes cannot keep, or a
        /// size that the system does not have.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let filter = ", $path, "::new(1_000_000, 0.01)?;")]
        /// assert_eq!((filter.expected_keys(), filter.false_positive_rate()), (Some(1_000_000), Some(0.01)));
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        pub fn new(expected_keys: u64, false_positive_rate: f64) -> Result<Self, crate::error::BuildError> {
            Self::builder().expected_keys(expected_keys).false_positive_rate(false_positive_rate).build()
        }

        /// Returns a [`Builder`](crate::Builder) for a filter of this type: for a size in bytes, a number of probes, a seed or
        /// a name for the kind of keys, if the type has a use for them.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let builder = ", $path, "::builder().expected_keys(1000).false_positive_rate(0.01);")]
        #[doc = concat!("let filter: ", $path, " = builder.random_seed().key_name(\"url\").build()?;")]
        /// assert_eq!(filter.key_name(), "url");
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        pub fn builder() -> crate::builder::options::Builder<Self> {
            crate::builder::options::Builder::new()
        }
    };
}

/// `insert` and its batches: by one writer or many, for a filter that grows, whose inserts may fail, or does not.
macro_rules! insert_methods {
    ($path:literal, one_writer) => {
        crate::filter::methods::insert_methods! { @ $path, "mut ", [mut], hash_in_chunks, bool, usize, "",
            /// Inserts a key. Returns true if it was new, like `HashSet::insert`.
            ///
            /// `false` means seen before, or a false positive: all bits of the key were set already. O(length of the key).
            /// In a loop, [`dispatch!`](crate::dispatch!) inlines this call.
        }
    };
    ($path:literal, one_writer that grows) => {
        crate::filter::methods::insert_methods! { @ $path, "mut ", [mut], try_hash_in_chunks, Result<bool, crate::error::BuildError>, Result<usize, crate::error::BuildError>, "?",
            /// Inserts a key. Returns true if it was new. O(length of the key + stages).
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError) if the key is new and needs a stage that cannot be built: there is no memory
            /// for it, or its rate is below what 64-bit hashes can keep. The key is then not inserted, and the filter is
            /// unchanged. In a batch, the keys before it are inserted and marked; this key and those after it are not inserted,
            /// and are marked `false`.
        }
    };
    ($path:literal, many_writers) => {
        crate::filter::methods::insert_methods! { @ $path, "", [], hash_in_chunks, bool, usize, "",
            /// Inserts a key. Returns true if the key was new to this call: the type documents the answers to racing
            /// callers.
            ///
            /// `false` means seen before, being inserted by another thread, or a false positive. O(length of the key).
        }
    };
    ($path:literal, many_writers that grow) => {
        crate::filter::methods::insert_methods! { @ $path, "", [], try_hash_in_chunks, Result<bool, crate::error::BuildError>, Result<usize, crate::error::BuildError>, "?",
            /// Inserts a key. Returns true if this call claimed it: of all threads that insert a key, at most one gets `true`.
            /// O(length of the key + stages).
            ///
            /// # Errors
            /// [`BuildError`](crate::BuildError) if the key is new and needs a stage that cannot be built: there is no memory
            /// for it, or its rate is below what 64-bit hashes can keep. The key is then not inserted. (If another thread began
            /// a stage during this very call, the key may read as seen afterwards, although no thread has claimed it.) In a
            /// batch, keys that were claimed by then are marked. The others are marked `false`, and most of them are not
            /// inserted.
        }
    };
    (@ $path:literal, $mutable:literal, [$($mut:tt)?], $hash_in_chunks:ident, $Answer:ty, $Count:ty, $try:literal, $(#[$insert:meta])*) => {
        $(#[$insert])*
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let ", $mutable, "seen = ", $path, "::new(1000, 1e-6)?;")]
        #[doc = concat!("assert!(seen.insert(\"a\")", $try, ");")]
        #[doc = concat!("assert!(!seen.insert(\"a\")", $try, ");")]
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[inline]
        pub fn insert<K: crate::key::single::Key + ?Sized>(&$($mut)? self, key: &K) -> $Answer {
            let hash = key.hash_with(self.0.hasher());
            self.0.insert_hash(hash)
        }

        /// Inserts many [`Keys`](crate::Keys) in order: `new[i]` is the answer of [`insert`](Self::insert) for the key
        /// i, also if keys repeat within the batch. Returns how many are `true`. Beyond the caches 1.5 to 5 times as
        /// fast as single calls, from some hundred keys on. Errors are the same as for `insert`.
        ///
        /// # Panics
        /// If `new` is not as long as there are keys.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let ", $mutable, "seen = ", $path, "::new(1000, 1e-6)?;")]
        /// let mut new = [false; 4];
        #[doc = concat!("assert_eq!(seen.insert_batch(&[\"a\", \"b\", \"a\", \"c\"], &mut new)", $try, ", 3);")]
        /// assert_eq!(new, [true, true, false, true]);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[track_caller]
        pub fn insert_batch<K: crate::key::keys::Keys + ?Sized>(&$($mut)? self, keys: &K, new: &mut [bool]) -> $Count {
            let hasher = self.0.hasher().clone();
            crate::batch::$hash_in_chunks(&hasher, keys, new, |hashes, new| self.0.insert_hashes(hashes, new))
        }

        /// [`insert`](Self::insert) for a key that was hashed by [`hasher`](Self::hasher) or by a hash function of your own.
        /// All 64 bits of a hash must be well mixed, because the high ones choose the block.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let ", $mutable, "seen = ", $path, "::new(1000, 1e-6)?;")]
        /// let hash = seen.hasher().bytes(b"key");
        #[doc = concat!("assert!(seen.insert_hash(hash)", $try, ");")]
        /// assert!(seen.contains("key"));
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[inline]
        pub fn insert_hash(&$($mut)? self, hash: u64) -> $Answer {
            self.0.insert_hash(hash)
        }

        /// [`insert_batch`](Self::insert_batch) for keys that were hashed elsewhere; see [`insert_hash`](Self::insert_hash).
        ///
        /// # Panics
        /// If `new` is not as long as `hashes`.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let ", $mutable, "seen = ", $path, "::new(1000, 1e-6)?;")]
        /// let hashes = [b"a", b"b", b"a"].map(|key| seen.hasher().bytes(key));
        /// let mut new = [false; 3];
        #[doc = concat!("assert_eq!(seen.insert_hashes(&hashes, &mut new)", $try, ", 2);")]
        /// assert_eq!(new, [true, true, false]);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[track_caller]
        pub fn insert_hashes(&$($mut)? self, hashes: &[u64], new: &mut [bool]) -> $Count {
            self.0.insert_hashes(hashes, new)
        }
    };
}

/// `par_insert`. Each type documents its own.
#[cfg(feature = "rayon")]
macro_rules! par_insert_method {
    ($path:literal, $mutable:literal, [$($mut:tt)?], $Result:ty, $try:literal, $(#[$doc:meta])*) => {
        $(#[$doc])*
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let ", $mutable, "seen = ", $path, "::new(100_000, 0.01)?;")]
        /// let keys: Vec<u64> = (0..50_000).collect();
        #[doc = concat!("seen.par_insert(&keys)", $try, ";")]
        /// assert!(keys.iter().all(|key| seen.contains(key)));
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        pub fn par_insert<K: crate::key::keys::Keys + Sync + ?Sized>(&$($mut)? self, keys: &K) -> $Result {
            self.0.par_insert(keys)
        }
    };
}

/// `prefetch_hash`, for hashes that `$hash` makes of a number.
macro_rules! prefetch_method {
    ($path:literal, $hash:literal) => {
        /// Requests the cache lines of a hash, so that a later query or insert of it need not wait for the memory. It changes
        /// no answer.
        ///
        /// In a loop of your own, such as a join's, call it for the key that comes 16 to 64 keys after the one that is queried:
        /// beyond the caches the loop is then nearly as fast as a batch, also in [`dispatch!`](crate::dispatch!). A filter of
        /// a few hundred KiB gains nothing. A filter of several parts prefetches in all of them, because an absent key is looked
        /// up in each. O(cache lines of a key).
        ///
        /// Pages of a mapped file that are not in memory are not read. The scheme is software-pipelined prefetching (Chen,
        /// Ailamaki, Gibbons and Mowry, "Improving Hash Join Performance through Prefetching", ICDE 2004).
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let mut seen = ", $path, "::new(1000, 1e-6)?;")]
        #[doc = concat!("let hashes: Vec<u64> = (0..1000u64).map(|key| ", $hash, ").collect();")]
        /// for &hash in &hashes[..100] {
        ///     _ = seen.insert_hash(hash);
        /// }
        /// let mut found = 0;
        /// for (i, &hash) in hashes.iter().enumerate() {
        ///     if let Some(&ahead) = hashes.get(i + 32) {
        ///         seen.prefetch_hash(ahead);
        ///     }
        ///     found += u32::from(seen.contains_hash(hash));
        /// }
        /// assert_eq!(found, 100);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[inline]
        pub fn prefetch_hash(&self, hash: u64) {
            self.0.prefetch_hash(hash);
        }
    };
}

/// Queries: for one key, in batches, for selected rows, and on all cores.
macro_rules! query_methods {
    ($path:literal) => {
        /// Returns true if a key may have been inserted: always if it was, and at the false-positive rate if it was not.
        /// O(length of the key), and O(stages) in a filter that grows.
        ///
        /// In a loop, [`dispatch!`](crate::dispatch!) inlines this call for filters of one size, and
        /// [`contains_batch`](Self::contains_batch) prefetches.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let mut seen = ", $path, "::new(1000, 1e-6)?;")]
        /// seen.extend(["a"]);
        /// assert!(seen.contains("a") && !seen.contains("b"));
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[inline]
        pub fn contains<K: crate::key::single::Key + ?Sized>(&self, key: &K) -> bool {
            self.0.contains_hash(key.hash_with(self.0.hasher()))
        }

        /// Queries many [`Keys`](crate::Keys): `found[i]` is the answer of [`contains`](Self::contains) for the key i. Returns
        /// how many were found. Beyond the caches 1.5 to 5 times as fast as single calls, because cache lines are prefetched.
        /// Batches of some hundred keys and more are best.
        ///
        /// # Panics
        /// If `found` is not as long as there are keys.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let mut seen = ", $path, "::new(1000, 1e-6)?;")]
        /// seen.extend([1u64]);
        /// let mut found = [false; 3];
        /// assert_eq!(seen.contains_batch(&[0u64, 1, 2], &mut found), 1);
        /// assert_eq!(found, [false, true, false]);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[track_caller]
        pub fn contains_batch<K: crate::key::keys::Keys + ?Sized>(&self, keys: &K, found: &mut [bool]) -> usize {
            crate::batch::hash_in_chunks(self.0.hasher(), keys, found, |hashes, found| {
                self.0.contains_hashes(hashes, found)
            })
        }

        /// [`contains`](Self::contains) for a key that was hashed elsewhere; see [`insert_hash`](Self::insert_hash).
        #[inline]
        pub fn contains_hash(&self, hash: u64) -> bool {
            self.0.contains_hash(hash)
        }

        crate::filter::methods::prefetch_method!($path, "seen.hasher().bytes(&key.to_le_bytes())");

        /// [`contains_batch`](Self::contains_batch) for keys that were hashed elsewhere; see
        /// [`insert_hash`](Self::insert_hash).
        ///
        /// # Panics
        /// If `found` is not as long as `hashes`.
        #[track_caller]
        pub fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
            self.0.contains_hashes(hashes, found)
        }

        /// Queries many [`Keys`](crate::Keys) on all cores of the current rayon pool: `found[i]` is the answer of
        /// [`contains`](Self::contains) for the key i. Returns how many were found. Allocates nothing for the hashes.
        ///
        /// # Panics
        /// If `found` is not as long as there are keys.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let mut seen = ", $path, "::new(1000, 1e-6)?;")]
        /// seen.extend(["a", "b"]);
        /// let mut found = [false; 3];
        /// assert_eq!(seen.par_contains(&["a", "b", "c"], &mut found), 2);
        /// assert_eq!(found, [true, true, false]);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[cfg(feature = "rayon")]
        #[track_caller]
        pub fn par_contains<K: crate::key::keys::Keys + Sync + ?Sized>(&self, keys: &K, found: &mut [bool]) -> usize {
            crate::filter::bulk::par_contains(self.0.hasher(), keys, found, |hashes, found| {
                self.0.contains_hashes(hashes, found)
            })
        }

        /// Keeps the bits of a bitmap whose keys may have been inserted, and clears the others: bit i is kept if it is set and
        /// [`contains`](Self::contains) is `true` for the key i. Returns how many are left. Rows whose bit is clear are not
        /// queried, so their key may be arbitrary, such as the placeholder of a null.
        ///
        /// Bit i is bit `i % 64`, counted from the lowest, of the word `i / 64`: on little-endian machines the order of Arrow's
        /// bitmaps. Begin with all bits set, or with a copy of a validity bitmap, so that nulls are not found. The bitmap may
        /// be longer than the keys need; bits beyond the last key are cleared. It begins at the first bit of a word: copy a
        /// bitmap of Arrow that begins at an offset without the offset. Costs little more than a batch of the selected rows.
        ///
        /// # Panics
        /// If `bitmap` has fewer words than the keys need.
        ///
        /// # Examples
        /// ```
        #[doc = concat!("let mut seen = ", $path, "::new(1000, 1e-6)?;")]
        /// seen.extend([10u64, 30]);
        /// let keys = [10u64, 20, 30];
        /// let mut all = [!0];
        /// assert_eq!(seen.prune_bitmap(&keys, &mut all), 2);
        /// assert_eq!(all, [0b101]);
        ///
        /// let mut valid = [0b110]; // the first is null
        /// assert_eq!(seen.prune_bitmap(&keys, &mut valid), 1);
        /// assert_eq!(valid, [0b100]);
        /// # Ok::<(), bloomline::BuildError>(())
        /// ```
        #[track_caller]
        pub fn prune_bitmap<K: crate::key::keys::Keys + ?Sized>(&self, keys: &K, bitmap: &mut [u64]) -> usize {
            let hash = |row: usize| keys.hash_at(row, self.0.hasher());
            crate::batch::selection::prune_bitmap(keys.len(), bitmap, hash, |hashes, found| {
                self.0.contains_hashes(hashes, found)
            })
        }
    };
}

/// The parameters and figures of every filter.
macro_rules! info_methods {
    () => {
        crate::filter::methods::info_methods!(any_hash);

        /// Returns the seed of the hash. A file keeps it.
        pub fn seed(&self) -> u64 {
            self.0.seed()
        }

        /// Returns the hasher in use, to hash keys once for several calls of `insert_hash` and `contains_hash`.
        pub fn hasher(&self) -> &crate::key::hash::KeyHasher {
            self.0.hasher()
        }
    };
    (any_hash) => {
        /// Returns the size of the bits in bytes, for a filter of several parts in all of them. Each part takes 0.3 kB besides,
        /// and a filter at most 1 kB. Those with many writers that grow or rotate take 8 kB more once a part is for 8192 keys or
        /// more.
        pub fn memory_bytes(&self) -> usize {
            self.0.memory_bytes()
        }

        /// Returns the number of distinct keys that the filter is made for, if it was made for a number: for the first
        /// stage if it grows, and for the window if it rotates. A file keeps it.
        pub fn expected_keys(&self) -> Option<u64> {
            self.0.expected_keys()
        }

        /// Returns the false-positive rate that the filter is made for, if it was made for a rate. A file keeps it.
        pub fn false_positive_rate(&self) -> Option<f64> {
            self.0.false_positive_rate()
        }

        /// Returns the false-positive rate of the present bits: exact for queries with random hashes, regardless of the
        /// keys inserted. For a filter that grows, the stages are assumed to be independent: the result is low by 1 to
        /// 4 % if its rate is 0.5 or more. While other threads insert, each word is read at some moment during the
        /// call. O(memory).
        pub fn current_fpr(&self) -> f64 {
            self.0.current_fpr()
        }

        /// Returns the fraction of bits that are set, 0 to 1, and 0 only if the filter is empty; for a counting filter, the
        /// fraction of counters that are not 0. Reads the whole filter, O(memory), except in a classic filter with one writer,
        /// which counts its bits as they are set.
        pub fn fill_ratio(&self) -> f64 {
            self.0.fill_ratio()
        }

        /// Returns the number of distinct keys that were inserted, estimated from the bits that are set; infinite if all
        /// are. In a `BloomFilter`, its standard deviation is below 0.2 % from a million keys on. As costly as
        /// [`fill_ratio`](Self::fill_ratio). A filter that rotates counts the keys that it remembers.
        pub fn estimated_keys(&self) -> f64 {
            self.0.estimated_keys()
        }

        /// Returns the name for the kind of keys, as set by [`Builder::key_name`](crate::Builder::key_name); empty if it has no
        /// name. A file keeps it.
        pub fn key_name(&self) -> &str {
            self.0.key_name()
        }

        /// Returns the kernel in use.
        pub fn kernel(&self) -> crate::kernel::Kernel {
            self.0.kernel()
        }

        /// Makes the system provide all of the filter's memory at once, on all cores of the current rayon pool if the feature
        /// `rayon` is on. No bit changes. O(memory). Later stages of a filter that grows are not included.
        ///
        /// A new filter takes memory as it is written to, so the first inserts pay for its pages. In a filter of 1 GiB they took
        /// 30 to 96 ns a key, and 20 to 26 later. After `populate`, which took 0.2 s, they took 19 to 23 from the first key on.
        /// Call it if the first keys must be as fast as the others, such as in a server. It gains nothing if far fewer keys
        /// arrive than the filter has pages.
        pub fn populate(&mut self) {
            self.0.populate();
        }

        /// Removes all keys, and all stages but the first of a filter that grows. O(memory).
        pub fn clear(&mut self) {
            self.0.clear();
        }
    };
}

/// Further figures of a filter of one size.
macro_rules! capacity_methods {
    () => {
        /// Returns the number of bits set for each key.
        pub fn probes(&self) -> u32 {
            self.0.probes()
        }

        /// Returns the expected false-positive rate with `keys` distinct keys inserted, by the model, at any load. Takes
        /// microseconds.
        pub fn expected_fpr(&self, keys: u64) -> f64 {
            self.0.expected_fpr(keys)
        }

        /// Returns the maximum number of distinct keys for which [`expected_fpr`](Self::expected_fpr) is at most
        /// `false_positive_rate`: 0 if one key is too many, and `u64::MAX` for a rate of 1 or more, which no number of
        /// keys exceeds. Takes microseconds.
        pub fn capacity(&self, false_positive_rate: f64) -> u64 {
            self.0.capacity(false_positive_rate)
        }
    };
}

/// The filter as a file; `Serialize` and `Deserialize` as its bytes.
macro_rules! file_methods {
    ($Filter:ident, $path:literal) => {
        #[cfg(feature = "file")]
        impl $Filter {
            /// Saves the filter to a file, in the format of docs/FORMAT.md, which every later version reads.
            ///
            /// At every moment the file at `path` is either the old or the complete new one, whatever fails: the filter
            /// is written to a temporary file in the same folder, which is flushed to the disk and then renamed. The
            /// new file gets the permissions of an existing one (and its owner, if the system allows it). A symbolic
            /// link is followed; a dangling one is replaced. A process that is killed while saving leaves its temporary
            /// file behind, `.bloomline-NAME-RANDOM.tmp`: the name of the file (or, if that has more than 100 bytes, a
            /// hash of it), and six letters and digits. It can be removed once no process saves to `path`.
            ///
            /// Takes the disk's time, and 1 MiB of memory; for a filter that grows or rotates under many writers, also
            /// a copy of the part that takes keys. If other threads insert meanwhile, a key whose insert happened
            /// before the call is saved. A key whose insert races with the call may have all, some or none of its bits
            /// in the file. The checksum is computed from the bytes written.
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) if the system refuses, or if `path` exists and is not a regular file,
            /// such as a folder or a device: use [`write_to`](Self::write_to) for those. The old file is then
            /// unchanged, unless the disk fails at the very end, when it is asked to keep the new name.
            ///
            /// # Examples
            /// ```
            /// # let folder = tempfile::tempdir()?;
            /// # let path = folder.path().join("seen.bloom");
            #[doc = concat!("use ", $path, ";")]
            ///
            #[doc = concat!("let mut seen = ", stringify!($Filter), "::new(1000, 0.01)?;")]
            /// seen.extend(["a"]);
            /// seen.save(&path)?;
            ///
            #[doc = concat!("let seen = ", stringify!($Filter), "::load(&path)?;")]
            /// assert!(seen.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), crate::file::FileError> {
                crate::file::save(path.as_ref(), |file| crate::file::Persist::write_to(&self.0, file))
            }

            /// Loads a filter from a file that [`save`](Self::save) or [`write_to`](Self::write_to) wrote, on any
            /// machine, directly into the filter's memory.
            ///
            /// All of the file is checked, and no more memory is allocated than its length justifies. Takes the disk's
            /// time, and up to 8 MiB of memory besides the filter, which uses the kernel of
            /// [`Kernel::detect`](crate::Kernel::detect).
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) with the file and its fault; see [`FileErrorKind`](crate::FileErrorKind).
            pub fn load(path: impl AsRef<std::path::Path>) -> Result<Self, crate::file::FileError> {
                crate::file::load(path.as_ref(), |file, length| Ok(Self(crate::file::Persist::read(file, length)?)))
            }

            /// Writes the filter as [`save`](Self::save) does, to a pipe, a socket or an object store, and flushes the
            /// writer. Takes as much memory as `save`; writes are of 1 MiB, so that no buffer is needed around `writer`.
            ///
            /// # Errors
            /// The writer's errors.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use ", $path, ";")]
            ///
            #[doc = concat!("let mut seen = ", stringify!($Filter), "::new(1000, 0.01)?;")]
            /// seen.extend(["a"]);
            /// let mut bytes = Vec::new();
            /// seen.write_to(&mut bytes)?;
            /// assert_eq!(bytes.len(), seen.file_bytes());
            ///
            #[doc = concat!("let seen = ", stringify!($Filter), "::read_from(&bytes[..])?;")]
            /// assert!(seen.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn write_to(&self, writer: impl std::io::Write) -> std::io::Result<()> {
                crate::file::Persist::write_to(&self.0, writer)
            }

            /// Writes the filter as [`save`](Self::save) does, to the start of a slice, such as a section of a file that is
            /// mapped or in the making. Returns the number of bytes written, which is [`file_bytes`](Self::file_bytes) unless
            /// other threads made the filter grow, or added kinds of keys, since. Takes as much memory as `save`; for a filter
            /// that grows under many writers, a whole copy.
            ///
            /// # Errors
            /// [`FileErrorKind::SliceTooShort`](crate::FileErrorKind::SliceTooShort). Nothing is then written, unless other
            /// threads added kinds of keys during the call.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("use ", $path, ";")]
            ///
            #[doc = concat!("let mut seen = ", stringify!($Filter), "::new(1000, 0.01)?;")]
            /// seen.extend(["a"]);
            /// let mut table = b"data".to_vec();
            /// let start = table.len().next_multiple_of(64); // there `BorrowedBloomFilter` reads a `BloomFilter` without a copy
            /// table.resize(start + seen.file_bytes(), 0);
            /// seen.write_to_slice(&mut table[start..])?;
            ///
            #[doc = concat!("let seen = ", stringify!($Filter), "::read_from(&table[start..])?;")]
            /// assert!(seen.contains("a"));
            /// # Ok::<(), Box<dyn std::error::Error>>(())
            /// ```
            pub fn write_to_slice(&self, slice: &mut [u8]) -> Result<usize, crate::file::FileError> {
                crate::file::Persist::write_to_slice(&self.0, slice)
            }

            /// Returns the kinds of values that keys were made of, one set of bits for each part of a key; empty if
            /// none are recorded. docs/FORMAT.md lists the bits. A file keeps them, and a merge unites them: keys without
            /// recorded kinds are texts then. Programs that hash values of columns record them, so that a filter of numbers
            /// is not queried for texts; inserts record nothing.
            pub fn key_kinds(&self) -> Vec<u16> {
                self.0.key_kinds()
            }

            /// Adds to [`key_kinds`](Self::key_kinds). Parts from number 1024 on count as one. If other threads save
            /// meanwhile, their files have the kinds before or after the call.
            ///
            /// # Examples
            /// ```
            #[doc = concat!("let filter = ", $path, "::new(1000, 0.01)?;")]
            /// filter.add_key_kinds(&[1]);
            /// filter.add_key_kinds(&[4, 1]);
            /// assert_eq!(filter.key_kinds(), [5, 1]);
            /// # Ok::<(), bloomline::BuildError>(())
            /// ```
            pub fn add_key_kinds(&self, kinds: &[u16]) {
                self.0.add_key_kinds(kinds);
            }

            /// Returns the exact number of bytes that [`save`](Self::save) and [`write_to`](Self::write_to) write. It does
            /// not depend on the keys, unless the filter grows, but on the kinds of keys. O(stages).
            pub fn file_bytes(&self) -> usize {
                crate::file::Persist::file_bytes(&self.0)
            }

            /// Reads a filter that [`save`](Self::save) or [`write_to`](Self::write_to) wrote. Bytes after the filter
            /// are left in `reader`. Reads are of up to 1 MiB, so that no buffer is needed around it.
            ///
            /// Memory grows with the data that arrive, to the filter and 1 MiB, because a header can declare any size.
            /// Each byte is copied once on average. [`load`](Self::load) does not copy, because a file has a length.
            ///
            /// # Errors
            /// [`FileError`](crate::FileError) with the fault; see [`FileErrorKind`](crate::FileErrorKind).
            pub fn read_from(reader: impl std::io::Read) -> Result<Self, crate::file::FileError> {
                Ok(Self(crate::file::Persist::read(reader, None)?))
            }
        }

        /// The contents of the filter's file: a byte string, or base64 in human-readable formats, such as JSON. Takes as much
        /// memory again. Other threads may insert meanwhile, as in [`write_to`](Self::write_to).
        #[cfg(feature = "serde")]
        impl serde::Serialize for $Filter {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                crate::file::serialize(&self.0, serializer)
            }
        }

        /// With all the checks of [`load`](Self::load).
        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $Filter {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                crate::file::deserialize(deserializer).map(Self)
            }
        }
    };
}

/// `Extend`; `FromIterator` for `sized` filters, whose iterator is counted first, and for filters that `grow`.
macro_rules! collect_impls {
    ($Filter:ident) => {
        /// Inserts the keys of an iterator, in batches.
        ///
        /// # Panics
        /// If the filter grows, and the system does not have the memory for its next stage. `insert_batch` returns an error
        /// instead.
        impl<K: crate::key::single::Key> Extend<K> for $Filter {
            fn extend<I: IntoIterator<Item = K>>(&mut self, keys: I) {
                let hasher = self.0.hasher().clone();
                let hashes = keys.into_iter().map(|key| key.hash_with(&hasher));
                crate::batch::collect::in_batches(hashes, |hashes| self.0.set_hashes(hashes));
            }
        }
    };
    ($Filter:ident, sized) => {
        crate::filter::methods::collect_impls!($Filter);

        /// Creates a filter of the iterator's keys, sized for their number at a false-positive rate of 1 %, with seed 0.
        ///
        /// The hashes wait in memory until their number is known, 8 bytes a key. If it is known beforehand, [`new`](Self::new)
        /// and [`extend`](Extend::extend) take no such memory.
        ///
        /// # Panics
        /// If the system does not have the memory.
        impl<K: crate::key::single::Key> FromIterator<K> for $Filter {
            fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
                let hashes = crate::batch::collect::hashes(keys);
                #[allow(unused_mut)] // of a filter that many threads write to
                let mut filter = crate::batch::collect::or_panic(Self::new(
                    hashes.len().max(1) as u64,
                    crate::batch::collect::DEFAULT_RATE,
                ));
                filter.0.set_hashes(&hashes);
                filter
            }
        }
    };
    ($Filter:ident, grows) => {
        crate::filter::methods::collect_impls!($Filter);

        /// Creates a filter of the iterator's keys at a false-positive rate of 1 %, with seed 0. It grows with the keys, so no
        /// hashes wait in memory.
        ///
        /// # Panics
        /// If the system does not have the memory.
        impl<K: crate::key::single::Key> FromIterator<K> for $Filter {
            fn from_iter<I: IntoIterator<Item = K>>(keys: I) -> Self {
                let keys = keys.into_iter();
                let first = keys.size_hint().0.max(crate::batch::collect::FIRST_STAGE_KEYS) as u64;
                let mut filter = crate::batch::collect::or_panic(Self::new(first, crate::batch::collect::DEFAULT_RATE));
                filter.extend(keys);
                filter
            }
        }
    };
}

/// `ParallelExtend`; `FromParallelIterator` for `sized` filters and for filters that `grow`.
#[cfg(feature = "rayon")]
macro_rules! par_collect_impls {
    ($Filter:ident) => {
        /// Inserts the keys of a parallel iterator, on all cores of the current rayon pool.
        ///
        /// # Panics
        /// If the filter grows, and the system does not have the memory for its next stage.
        impl<K: crate::key::single::Key + Send> rayon::iter::ParallelExtend<K> for $Filter {
            fn par_extend<I: rayon::iter::IntoParallelIterator<Item = K>>(&mut self, keys: I) {
                self.0.par_extend(keys);
            }
        }
    };
    ($Filter:ident, sized) => {
        crate::filter::methods::par_collect_impls!($Filter);

        /// As [`FromIterator`], on all cores of the current rayon pool.
        ///
        /// # Panics
        /// If the system does not have the memory.
        impl<K: crate::key::single::Key + Send> rayon::iter::FromParallelIterator<K> for $Filter {
            fn from_par_iter<I: rayon::iter::IntoParallelIterator<Item = K>>(keys: I) -> Self {
                let hashes = crate::filter::bulk::hashes(keys);
                #[allow(unused_mut)] // of a filter that many threads write to
                let mut filter = crate::batch::collect::or_panic(Self::new(
                    hashes.len().max(1) as u64,
                    crate::batch::collect::DEFAULT_RATE,
                ));
                filter.0.par_insert(&crate::key::keys::Hashes::new(&hashes));
                filter
            }
        }
    };
    ($Filter:ident, grows) => {
        crate::filter::methods::par_collect_impls!($Filter);

        /// As [`FromIterator`], on all cores of the current rayon pool. Which key is inserted into which stage varies between
        /// runs.
        ///
        /// # Panics
        /// If the system does not have the memory.
        impl<K: crate::key::single::Key + Send> rayon::iter::FromParallelIterator<K> for $Filter {
            fn from_par_iter<I: rayon::iter::IntoParallelIterator<Item = K>>(keys: I) -> Self {
                let keys = rayon::iter::IntoParallelIterator::into_par_iter(keys);
                let first = rayon::iter::ParallelIterator::opt_len(&keys)
                    .unwrap_or(0)
                    .max(crate::batch::collect::FIRST_STAGE_KEYS);
                #[allow(unused_mut)] // of a filter that many threads write to
                let mut filter =
                    crate::batch::collect::or_panic(Self::new(first as u64, crate::batch::collect::DEFAULT_RATE));
                filter.0.par_extend(keys);
                filter
            }
        }
    };
}

/// `TryFrom` a builder, [`Filter`](crate::Filter), `Debug`, and unwind safety.
macro_rules! trait_impls {
    ($Filter:ident, one_writer) => {
        crate::filter::methods::trait_impls!(@ $Filter);
        crate::filter::methods::trait_impls!(@ $Filter, [] $Filter, [Ok]);
    };
    ($Filter:ident, one_writer that grows) => {
        crate::filter::methods::trait_impls!(@ $Filter);
        crate::filter::methods::trait_impls!(@ $Filter, [] $Filter, []);
    };
    ($Filter:ident, many_writers) => {
        crate::filter::methods::trait_impls!($Filter, one_writer);
        crate::filter::methods::trait_impls!(@ $Filter, [] &$Filter, [Ok]);
    };
    ($Filter:ident, many_writers that grow) => {
        crate::filter::methods::trait_impls!($Filter, one_writer that grows);
        crate::filter::methods::trait_impls!(@ $Filter, [] &$Filter, []);
    };
    (@ $Filter:ident) => {
        impl TryFrom<crate::builder::options::Builder<$Filter>> for $Filter {
            type Error = crate::error::BuildError;

            fn try_from(builder: crate::builder::options::Builder<$Filter>) -> Result<Self, crate::error::BuildError> {
                crate::builder::options::FromBuilder::from_builder(builder).map(Self)
            }
        }

        impl core::fmt::Debug for $Filter {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }

        // A panic leaves a valid filter: only some bits may be set of a key whose insert it interrupted.
        impl core::panic::UnwindSafe for $Filter {}
        impl core::panic::RefUnwindSafe for $Filter {}
    };
    (@ $Filter:ident, [] $Self:ty, [$($Ok:ident)?]) => {
        impl crate::filter::any::Sealed for $Self {}

        impl crate::filter::any::Filter for $Self {
            #[inline]
            fn try_insert_hash(&mut self, hash: u64) -> Result<bool, crate::error::BuildError> {
                $($Ok)? (self.0.insert_hash(hash))
            }

            #[track_caller]
            fn try_insert_hashes(&mut self, hashes: &[u64], new: &mut [bool]) -> Result<usize, crate::error::BuildError> {
                $($Ok)? (self.0.insert_hashes(hashes, new))
            }

            #[inline]
            fn contains_hash(&self, hash: u64) -> bool {
                self.0.contains_hash(hash)
            }

            #[inline]
            fn prefetch_hash(&self, hash: u64) {
                self.0.prefetch_hash(hash);
            }

            #[track_caller]
            fn contains_hashes(&self, hashes: &[u64], found: &mut [bool]) -> usize {
                self.0.contains_hashes(hashes, found)
            }

            fn hasher(&self) -> &crate::key::hash::KeyHasher {
                self.0.hasher()
            }

            fn memory_bytes(&self) -> usize {
                self.0.memory_bytes()
            }

            fn expected_keys(&self) -> Option<u64> {
                self.0.expected_keys()
            }

            fn false_positive_rate(&self) -> Option<f64> {
                self.0.false_positive_rate()
            }

            fn current_fpr(&self) -> f64 {
                self.0.current_fpr()
            }

            fn estimated_keys(&self) -> f64 {
                self.0.estimated_keys()
            }

            fn key_name(&self) -> &str {
                self.0.key_name()
            }
        }
    };
}

pub(crate) use {
    capacity_methods, collect_impls, constructors, file_methods, info_methods, insert_methods, prefetch_method,
    query_methods, trait_impls,
};
#[cfg(feature = "rayon")]
pub(crate) use {par_collect_impls, par_insert_method};
