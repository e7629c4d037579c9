/* Queries a filter that bloomline saved. This header is the whole reader: C99, or C++, with the C library alone.
 *
 *     bloomline filter;
 *     if (bloomline_open(&filter, "seen.bloom") != 0)
 *         return fprintf(stderr, "%s\n", filter.error), 1;
 *     if (bloomline_contains(&filter, "https://example.org/", 20))
 *         puts("probably seen");
 *     bloomline_close(&filter);
 *
 * The reader takes filters, scalable filters and rotating filters of version 2, and refuses other versions, the layouts of `variants`, and
 * damaged files. An answer "no" is certain; an answer "yes" is wrong at the rate of the filter. Any number of threads may query one filter.
 * The format is in docs/FORMAT.md. Of its checks, those of the text of a key name and of the planned sizes of stages and generations are
 * left out, because no answer depends on them.
 */
#ifndef BLOOMLINE_H
#define BLOOMLINE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    /* The reason for a refusal; empty if the filter is open. */
    char error[160];
    /* What the keys are, such as "line" or "url"; without a zero at its end. */
    const char *key_name;
    size_t key_name_length;
    /* A bit for each kind of the keys (docs/FORMAT.md, "Kinds of keys"); 0 if all keys are texts or byte strings. */
    unsigned kinds;
    /* Private. */
    const unsigned char *first, *end;
    void *owned;
    uint64_t seed, secret[4];
} bloomline;

/* Opens the filter in `length` bytes, which must stay valid and unchanged; so a mapped file serves many processes. Reads all bytes once,
 * because a checksum covers them. Returns 0, or -1 with a reason in `filter->error`. */
static inline int bloomline_view(bloomline *filter, const void *bytes, size_t length);

/* Reads a file into memory and opens the filter in it. Returns 0, or -1 with a reason in `filter->error`. */
static inline int bloomline_open(bloomline *filter, const char *path);

/* Frees the memory of `bloomline_open`. */
static inline void bloomline_close(bloomline *filter);

/* Returns 1 if the filter contains a text or a byte string, or if it is not open, as no answer must lose a key. An integer is its bytes,
 * little-endian, in the width that was inserted. */
static inline int bloomline_contains(const bloomline *filter, const void *key, size_t length);

/* The hash of a key, for `bloomline_contains_hash`, and the hash of a tuple: `bloomline_pair(f, bloomline_pair(f, a, b), c)`. */
static inline uint64_t bloomline_hash(const bloomline *filter, const void *key, size_t length);
static inline uint64_t bloomline_pair(const bloomline *filter, uint64_t hash, uint64_t member);
static inline int bloomline_contains_hash(const bloomline *filter, uint64_t hash);

/* The rest is private. */

static inline uint64_t bloomline__load2(const unsigned char *at) { return at[0] | (uint64_t)at[1] << 8; }
static inline uint64_t bloomline__load4(const unsigned char *at) { return bloomline__load2(at) | bloomline__load2(at + 2) << 16; }
static inline uint64_t bloomline__load8(const unsigned char *at) { return bloomline__load4(at) | bloomline__load4(at + 4) << 32; }

/* The upper half of a product of 128 bits. */
static inline uint64_t bloomline__high(uint64_t a, uint64_t b) {
    const uint64_t low = UINT32_MAX, middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (((a & low) * (b >> 32) + (middle & low)) >> 32);
}

static inline uint64_t bloomline__mum(uint64_t a, uint64_t b) { return bloomline__high(a, b) ^ a * b; }

static inline unsigned bloomline__ones(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (unsigned)(((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101 >> 56);
}

static inline uint64_t bloomline__mix16(const unsigned char *at, const unsigned char *secret) {
    return bloomline__mum(bloomline__load8(at) ^ bloomline__load8(secret), bloomline__load8(at + 8) ^ bloomline__load8(secret + 8));
}

static inline uint64_t bloomline__avalanche(uint64_t hash) {
    hash = (hash ^ hash >> 37) * 0x165667919E3779F9;
    return hash ^ hash >> 32;
}

/* XXH3 for the lengths that files have, which are greater than 16. */
static inline uint64_t bloomline__xxh3(const unsigned char *at, size_t length) {
    const unsigned char *secret = (const unsigned char *)
        "\xb8\xfe\x6c\x39\x23\xa4\x4b\xbe\x7c\x01\x81\x2c\xf7\x21\xad\x1c\xde\xd4\x6d\xe9\x83\x90\x97\xdb\x72\x40\xa4\xa4\xb7\xb3\x67\x1f"
        "\xcb\x79\xe6\x4e\xcc\xc0\xe5\x78\x82\x5a\xd0\x7d\xcc\xff\x72\x21\xb8\x08\x46\x74\xf7\x43\x24\x8e\xe0\x35\x90\xe6\x81\x3a\x26\x4c"
        "\x3c\x28\x52\xbb\x91\xc3\x00\xcb\x88\xd0\x65\x8b\x1b\x53\x2e\xa3\x71\x64\x48\x97\xa2\x0d\xf9\x4e\x38\x19\xef\x46\xa9\xde\xac\xd8"
        "\xa8\xfa\x76\x3f\xe3\x9c\x34\x3f\xf9\xdc\xbb\xc7\xc7\x0b\x4f\x1d\x8a\x51\xe0\x4b\xcd\xb4\x59\x31\xc8\x9f\x7e\xc9\xd9\x78\x73\x64"
        "\xea\xc5\xac\x83\x34\xd3\xeb\xc3\xc5\x81\xa0\xff\xfa\x13\x63\xeb\x17\x0d\xdd\x51\xb7\xf0\xda\x49\xd3\x16\x55\x26\x29\xd4\x68\x9e"
        "\x2b\x16\xbe\x58\x7d\x47\xa1\xfc\x8f\xf8\xb8\xd1\x7a\xd0\x31\xce\x45\xcb\x3a\x8f\x95\x16\x04\x28\xaf\xd7\xfb\xca\xbb\x4b\x40\x7e";
    const uint64_t prime32 = 0x9E3779B1, prime64 = 0x9E3779B185EBCA87;
    uint64_t lanes[8] = {0xC2B2AE3D,         prime64,    0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9,
                         0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, prime32};
    uint64_t hash = length * prime64;
    size_t i, stripe, stripes = (length - 1) / 64;
    if (length <= 128) {
        for (i = 0; i <= (length - 1) / 32; i++)
            hash += bloomline__mix16(at + 16 * i, secret + 32 * i) + bloomline__mix16(at + length - 16 * (i + 1), secret + 32 * i + 16);
        return bloomline__avalanche(hash);
    }
    if (length <= 240) {
        for (i = 0; i < 8; i++) hash += bloomline__mix16(at + 16 * i, secret + 16 * i);
        hash = bloomline__avalanche(hash);
        for (; i < length / 16; i++) hash += bloomline__mix16(at + 16 * i, secret + 16 * i - 125);
        return bloomline__avalanche(hash + bloomline__mix16(at + length - 16, secret + 119));
    }
    /* The last stripe ends with the bytes, and may overlap the stripe before it. */
    for (stripe = 0; stripe <= stripes; stripe++) {
        const unsigned char *word = stripe < stripes ? at + 64 * stripe : at + length - 64;
        const unsigned char *mask = stripe < stripes ? secret + 8 * (stripe % 16) : secret + 121;
        for (i = 0; i < 8; i++) {
            const uint64_t value = bloomline__load8(word + 8 * i), mixed = value ^ bloomline__load8(mask + 8 * i);
            lanes[i ^ 1] += value;
            lanes[i] += (mixed & UINT32_MAX) * (mixed >> 32);
        }
        for (i = 0; i < 8 && stripe < stripes && stripe % 16 == 15; i++)
            lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ bloomline__load8(secret + 128 + 8 * i)) * prime32;
    }
    for (i = 0; i < 8; i += 2)
        hash += bloomline__mum(lanes[i] ^ bloomline__load8(secret + 11 + 8 * i), lanes[i + 1] ^ bloomline__load8(secret + 19 + 8 * i));
    return bloomline__avalanche(hash);
}

/* wyhash, final version 3. */
static inline uint64_t bloomline_hash(const bloomline *filter, const void *key, size_t length) {
    const unsigned char *at = (const unsigned char *)(length == 0 ? "" : key), *end = at + length;
    const uint64_t *secret = filter->secret;
    uint64_t seed = filter->seed ^ secret[0], a = 0, b = 0;
    if (length > 16) {
        if (end - at > 48) {
            uint64_t one = seed, two = seed;
            for (; end - at > 48; at += 48) {
                seed = bloomline__mum(bloomline__load8(at) ^ secret[1], bloomline__load8(at + 8) ^ seed);
                one = bloomline__mum(bloomline__load8(at + 16) ^ secret[2], bloomline__load8(at + 24) ^ one);
                two = bloomline__mum(bloomline__load8(at + 32) ^ secret[3], bloomline__load8(at + 40) ^ two);
            }
            seed ^= one ^ two;
        }
        for (; end - at > 16; at += 16) seed = bloomline__mum(bloomline__load8(at) ^ secret[1], bloomline__load8(at + 8) ^ seed);
        a = bloomline__load8(end - 16);
        b = bloomline__load8(end - 8);
    } else if (length >= 4) {
        const size_t middle = length / 8 * 4;
        a = bloomline__load4(at) << 32 | bloomline__load4(at + middle);
        b = bloomline__load4(end - 4) << 32 | bloomline__load4(end - 4 - middle);
    } else if (length > 0) {
        a = (uint64_t)at[0] << 16 | (uint64_t)at[length / 2] << 8 | at[length - 1];
    }
    return bloomline__mum(secret[1] ^ length, bloomline__mum(a ^ secret[1], b ^ seed));
}

/* The hash of the bytes of both numbers. */
static inline uint64_t bloomline_pair(const bloomline *filter, uint64_t hash, uint64_t member) {
    const uint64_t a = hash << 32 | (uint32_t)member, b = member >> 32 << 32 | hash >> 32;
    const uint64_t *secret = filter->secret;
    return bloomline__mum(secret[1] ^ 16, bloomline__mum(a ^ secret[1], b ^ filter->seed ^ secret[0]));
}

/* Sets the seed and its secret: odd words of bytes with four ones, which differ from one another in 32 bits. */
static inline void bloomline__set_seed(bloomline *filter, uint64_t seed) {
    unsigned char balanced[70];
    int count = 0, words = 0, i;
    filter->seed = seed;
    for (i = 0; i < 256; i++)
        if (bloomline__ones((uint64_t)i) == 4) balanced[count++] = (unsigned char)i;
    while (words < 4) {
        uint64_t word = 0;
        int fits = 1;
        for (i = 0; i < 64; i += 8) {
            seed += 0xA0761D6478BD642F;
            word |= (uint64_t)balanced[bloomline__mum(seed, seed ^ 0xE7037ED1A0B428DB) % 70] << i;
        }
        for (i = 0; i < words; i++) fits = fits && bloomline__ones(word ^ filter->secret[i]) == 32;
        if (fits && word % 2 == 1) filter->secret[words++] = word;
    }
}

static inline uint64_t bloomline__golden_hash(const bloomline *filter) {
    static const size_t lengths[16] = {0, 1, 2, 3, 4, 8, 16, 17, 48, 49, 100, 1, 2, 4, 8, 16};
    unsigned char key[100];
    uint64_t golden = 0;
    int i;
    for (i = 0; i < 100; i++) key[i] = (unsigned char)(i + 1);
    for (i = 0; i < 16; i++) golden = bloomline_pair(filter, golden, bloomline_hash(filter, key, lengths[i]));
    return golden;
}

/* The length of a filter's file, of which the header was checked. */
static inline uint64_t bloomline__part_length(const unsigned char *part) {
    return 80 + bloomline__load4(part + 48) + 64 * bloomline__load8(part + 16);
}

static inline int bloomline_contains_hash(const bloomline *filter, uint64_t hash) {
    const uint64_t one = bloomline__mum(hash, 0x6A09E667F3BCC909), two = bloomline__mum(one, 0xBB67AE8584CAA73B);
    const unsigned char *part = filter->first;
    for (; part != filter->end; part += bloomline__part_length(part)) {
        const unsigned char *blocks = part + 64 + bloomline__load4(part + 48);
        const unsigned char *block = blocks + 64 * bloomline__high(hash, bloomline__load8(part + 16));
        const int probes = part[14];
        uint64_t missing = 0;
        int lane;
        for (lane = 0; lane < 4; lane++) {
            const uint64_t f = one >> 16 * lane, s = two >> 16 * lane;
            uint64_t wanted = (uint64_t)1 << (f & 63);
            if (probes > 4) wanted |= (uint64_t)1 << (f >> 6 & 63);
            if (probes > 8) wanted |= (uint64_t)1 << (s & 63);
            if (probes > 12) wanted |= (uint64_t)1 << (s >> 6 & 63);
            missing |= wanted & ~bloomline__load8(block + 8 * (lane + 4 * (f >> 15 & 1)));
        }
        if (missing == 0) return 1;
    }
    return filter->first == NULL;
}

static inline int bloomline_contains(const bloomline *filter, const void *key, size_t length) {
    return bloomline_contains_hash(filter, bloomline_hash(filter, key, length));
}

static inline int bloomline__refuse(bloomline *filter, const char *problem, uint64_t value, const char *remedy) {
    snprintf(filter->error, sizeof filter->error, "%s %llu: %s", problem, (unsigned long long)value, remedy);
    filter->first = filter->end = NULL;
    return -1;
}

static inline int bloomline__damaged(bloomline *filter, const char *problem, uint64_t value) {
    return bloomline__refuse(filter, problem, value, "the file is damaged, so copy or build it again");
}

static inline int bloomline__check_header(bloomline *filter, const unsigned char *header, uint64_t length) {
    const uint64_t version = length < 64 ? 0 : bloomline__load4(header + 8);
    if (length < 64) return bloomline__damaged(filter, "the file ends within a header, after bytes:", length);
    if (bloomline__xxh3(header, 56) != bloomline__load8(header + 56)) return bloomline__damaged(filter, "wrong checksum of header", 1);
    if (version == 2) return 0;
    return bloomline__refuse(filter, "the file is of version", version, version < 2 ? "build the filter again" : "use a newer bloomline.h");
}

static inline int bloomline__check_fields(bloomline *filter, const unsigned char *at, size_t length) {
    /* The lengths of the values of unknown fields, of the tags from 1 to 5, and of 0x8001. */
    static const size_t least[7] = {0, 8, 8, 1, 0, 16, 2}, most[7] = {65535, 8, 8, 1024, 0, 16, 2048};
    size_t place = 0, last = 0, size, tag, i;
    filter->key_name = "";
    filter->key_name_length = 0;
    if (length == 0) return 0;
    if (bloomline__xxh3(at, length - 8) != bloomline__load8(at + length - 8))
        return bloomline__damaged(filter, "wrong checksum of fields of length", length);
    for (; place + 12 <= length && bloomline__load2(at + place) != 0; last = tag, place += 4 + size) {
        const unsigned char *value = at + place + 4;
        uint64_t number;
        int known, fits;
        tag = (size_t)bloomline__load2(at + place);
        size = (size_t)bloomline__load2(at + place + 2);
        known = tag <= 5 ? (int)tag : tag == 0x8001 ? 6 : 0;
        fits = tag > last && size <= length - 12 - place && size >= least[known] && size <= most[known];
        number = fits && (known == 1 || known == 2) ? bloomline__load8(value) : 1;
        if (known == 0 && tag >= 0x8000) return bloomline__refuse(filter, "unknown field", tag, "use a newer bloomline.h");
        /* A rate is a double between 0 and 1, by its bits. */
        if (!fits || number == 0 || (known == 2 && number >= 0x3FF0000000000000) || (known == 6 && size % 2 != 0))
            return bloomline__damaged(filter, "invalid field", tag);
        if (known == 3) filter->key_name = (const char *)value, filter->key_name_length = size;
        for (i = 0; known == 6 && i < size; i += 2) filter->kinds |= (unsigned)bloomline__load2(value + i);
    }
    if (place == 0 || length != (place + 8 + 63) / 64 * 64) return bloomline__damaged(filter, "wrong length of fields:", length);
    for (; place < length - 8; place++)
        if (at[place] != 0) return bloomline__damaged(filter, "bytes after the fields, at", place);
    return 0;
}

/* Checks one filter at the start of these bytes. */
static inline int bloomline__check_part(bloomline *filter, const unsigned char *part, uint64_t length) {
    uint64_t probes, blocks, fields, trailer, at, ones = 0;
    if (length < 8 || memcmp(part, "\x89" "BLOOM\r\n", 8) != 0)
        return bloomline__refuse(filter, "no filter begins where bytes remain:", length, "give a file that bloomline saved");
    if (bloomline__check_header(filter, part, length) != 0) return -1;
    probes = bloomline__load2(part + 14);
    blocks = bloomline__load8(part + 16);
    fields = bloomline__load4(part + 48);
    if (bloomline__load2(part + 12) != 1)
        return bloomline__refuse(filter, "the filter has layout", bloomline__load2(part + 12), "only layout 1 (words4) can be read");
    if (probes == 0 || probes > 16 || probes % 4 != 0 || blocks == 0 || blocks >> 57 != 0 || fields % 64 != 0 || fields > 65536 ||
        bloomline__load8(part + 40) != 0 || bloomline__load4(part + 52) != 0)
        return bloomline__damaged(filter, "invalid values in the header of a filter, its number of blocks is", blocks);
    if (filter->secret[0] == 0) bloomline__set_seed(filter, bloomline__load8(part + 24));
    if (filter->seed != bloomline__load8(part + 24)) return bloomline__damaged(filter, "parts differ in their seed, one has", filter->seed);
    if (bloomline__golden_hash(filter) != bloomline__load8(part + 32))
        return bloomline__refuse(filter, "the keys have another hash, with seed", filter->seed, "use a newer bloomline.h");
    if (length < 80 + fields || (length - 80 - fields) / 64 < blocks)
        return bloomline__damaged(filter, "the file ends too soon for blocks:", blocks);
    if (bloomline__check_fields(filter, part + 64, (size_t)fields) != 0) return -1;
    trailer = 64 + fields + 64 * blocks;
    for (at = 64 + fields; at < trailer; at += 8) ones += bloomline__ones(bloomline__load8(part + at));
    if (bloomline__xxh3(part + 64 + fields, (size_t)(64 * blocks + 8)) != bloomline__load8(part + trailer + 8))
        return bloomline__damaged(filter, "wrong checksum of blocks:", blocks);
    return ones == bloomline__load8(part + trailer) ? 0 : bloomline__damaged(filter, "wrong number of bits:", ones);
}

static inline int bloomline_view(bloomline *filter, const void *bytes, size_t length) {
    const unsigned char *start = (const unsigned char *)bytes, *end = start + length, *part = start;
    const int is_series = length >= 8 && memcmp(start, "\x89" "BLSER\r\n", 8) == 0;
    const int is_rotating = length >= 8 && memcmp(start, "\x89" "BLROT\r\n", 8) == 0;
    uint64_t parts = 1;
    memset(filter, 0, sizeof *filter);
    if (is_series || is_rotating) {
        uint64_t rate, merged, reserved;
        if (bloomline__check_header(filter, start, length) != 0) return -1;
        parts = bloomline__load4(start + 12);
        rate = bloomline__load8(start + 16);
        merged = is_series ? bloomline__load4(start + 52) : 0;
        reserved = is_series ? bloomline__load4(start + 48) : bloomline__load4(start + 48) >> 1 | bloomline__load4(start + 52);
        if (parts < merged + (is_series ? 1 : 2) || parts - merged > 64 || merged > 255 || reserved != 0 || rate == 0 ||
            rate >= 0x3FF0000000000000 || bloomline__load8(start + 24) == 0)
            return bloomline__damaged(filter, "invalid values in the header of a chain, its number of filters is", parts);
        if (bloomline__load8(start + 40) != length) return bloomline__damaged(filter, "the file has another length than its own:", length);
        part += 64;
    }
    filter->first = part;
    for (; parts > 0; parts--, part += bloomline__part_length(part)) {
        if (bloomline__check_part(filter, part, (uint64_t)(end - part)) != 0) return -1;
        if (is_rotating && memcmp(part + 12, filter->first + 12, 20) != 0)
            return bloomline__damaged(filter, "generations differ in their sizes, with generations left:", parts);
    }
    filter->end = part;
    return part == end ? 0 : bloomline__damaged(filter, "bytes after the filter:", (uint64_t)(end - part));
}

static inline int bloomline_open(bloomline *filter, const char *path) {
    unsigned char *bytes = NULL, *grown;
    size_t length = 0, room = 0;
    FILE *file = fopen(path, "rb");
    int error = file != NULL ? 0 : errno != 0 ? errno : EIO, status = -1;
    memset(filter, 0, sizeof *filter);
    while (error == 0 && !feof(file)) {
        room = length + length / 2 + 65536;
        grown = (unsigned char *)realloc(bytes, room);
        bytes = grown != NULL ? grown : bytes;
        length += grown != NULL ? fread(bytes + length, 1, room - length, file) : 0;
        error = grown == NULL ? ENOMEM : !ferror(file) ? 0 : errno != 0 ? errno : EIO;
    }
    if (file != NULL) fclose(file);
    if (error == 0) status = bloomline_view(filter, bytes, length);
    else snprintf(filter->error, sizeof filter->error, "%.100s: %s", path, strerror(error));
    if (status == 0) filter->owned = bytes;
    else free(bytes);
    return status;
}

static inline void bloomline_close(bloomline *filter) {
    free(filter->owned);
    memset(filter, 0, sizeof *filter);
}

#endif
