/* Asks a filter that bloomline saved. This header is the whole reader: C99, or C++, with the C library alone.
 *
 *     bloomline filter;
 *     if (bloomline_open(&filter, "seen.bloom") != 0)
 *         return fprintf(stderr, "%s\n", filter.error), 1;
 *     if (bloomline_contains(&filter, "https://example.org/", 20))
 *         puts("probably seen");
 *     bloomline_close(&filter);
 *
 * The reader takes filters, scalable filters and rotating filters of version 2, and refuses other versions, the layouts of `variants`, and
 * damaged files. An answer "no" is certain; an answer "yes" is wrong at the rate of the filter. Any number of threads may ask one filter.
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

/* Returns 1 if the filter contains a text or a byte string. An integer is its bytes, little-endian, in the width that was inserted. */
static inline int bloomline_contains(const bloomline *filter, const void *key, size_t length);

/* The hash of a key, for `bloomline_contains_hash`, and the hash of a tuple: `bloomline_pair(f, bloomline_pair(f, a, b), c)`. */
static inline uint64_t bloomline_hash(const bloomline *filter, const void *key, size_t length);
static inline uint64_t bloomline_pair(const bloomline *filter, uint64_t hash, uint64_t member);
static inline int bloomline_contains_hash(const bloomline *filter, uint64_t hash);

/* The rest is private. */

static inline uint64_t bloomline__load(const unsigned char *at, size_t bytes) {
    uint64_t value = 0;
    while (bytes > 0) value = value << 8 | at[--bytes];
    return value;
}

static inline uint64_t bloomline__load8(const unsigned char *at) {
    return (uint64_t)at[0] | (uint64_t)at[1] << 8 | (uint64_t)at[2] << 16 | (uint64_t)at[3] << 24 | (uint64_t)at[4] << 32 |
           (uint64_t)at[5] << 40 | (uint64_t)at[6] << 48 | (uint64_t)at[7] << 56;
}

/* The upper half of a product of 128 bits. */
static inline uint64_t bloomline__high(uint64_t a, uint64_t b) {
    const uint64_t low = UINT32_MAX, middle = (a >> 32) * (b & low) + ((a & low) * (b & low) >> 32);
    return (a >> 32) * (b >> 32) + (middle >> 32) + (((a & low) * (b >> 32) + (middle & low)) >> 32);
}

static inline uint64_t bloomline__mum(uint64_t a, uint64_t b) { return bloomline__high(a, b) ^ a * b; }

/* XXH3 for the lengths that files have, which are greater than 16. */
static inline uint64_t bloomline__mix16(const unsigned char *at, const unsigned char *secret) {
    return bloomline__mum(bloomline__load8(at) ^ bloomline__load8(secret), bloomline__load8(at + 8) ^ bloomline__load8(secret + 8));
}

static inline uint64_t bloomline__avalanche(uint64_t hash) {
    hash = (hash ^ hash >> 37) * 0x165667919E3779F9;
    return hash ^ hash >> 32;
}

static inline uint64_t bloomline__xxh3(const unsigned char *at, size_t length) {
    static const unsigned char secret[192] = {
        0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4, 0x6d, 0xe9, 0x83, 0x90,
        0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e, 0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d,
        0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43, 0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28,
        0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb, 0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e,
        0x38, 0x19, 0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7, 0xc7, 0x0b,
        0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78, 0x73, 0x64, 0xea, 0xc5, 0xac, 0x83,
        0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb, 0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16,
        0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16, 0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce,
        0x45, 0xcb, 0x3a, 0x8f, 0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e};
    const uint64_t prime32 = 0x9E3779B1, prime64 = 0x9E3779B185EBCA87;
    uint64_t lanes[8] = {0xC2B2AE3D, prime64, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x85EBCA77, 0x27D4EB2F165667C5, prime32};
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

static inline unsigned bloomline__ones(uint64_t word) {
    word -= word >> 1 & 0x5555555555555555;
    word = (word & 0x3333333333333333) + (word >> 2 & 0x3333333333333333);
    return (unsigned)(((word + (word >> 4)) & 0x0F0F0F0F0F0F0F0F) * 0x0101010101010101 >> 56);
}

/* wyhash, final version 3. */
static inline uint64_t bloomline_hash(const bloomline *filter, const void *key, size_t length) {
    const unsigned char *at = (const unsigned char *)key, *end = at + length;
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
        a = bloomline__load(at, 4) << 32 | bloomline__load(at + middle, 4);
        b = bloomline__load(end - 4, 4) << 32 | bloomline__load(end - 4 - middle, 4);
    } else if (length > 0) {
        a = (uint64_t)at[0] << 16 | (uint64_t)at[length / 2] << 8 | at[length - 1];
    }
    return bloomline__mum(secret[1] ^ length, bloomline__mum(a ^ secret[1], b ^ seed));
}

static inline uint64_t bloomline_pair(const bloomline *filter, uint64_t hash, uint64_t member) {
    unsigned char bytes[16];
    int i;
    for (i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(hash >> 8 * i);
        bytes[8 + i] = (unsigned char)(member >> 8 * i);
    }
    return bloomline_hash(filter, bytes, 16);
}

/* Sets the seed and its secret: odd words of bytes with four ones, which differ from one another in 32 bits. */
static inline void bloomline__set_seed(bloomline *filter, uint64_t seed) {
    unsigned char balanced[70];
    int count = 0, words = 0, byte, i;
    filter->seed = seed;
    for (byte = 0; byte < 256; byte++)
        if (bloomline__ones((uint64_t)byte) == 4) balanced[count++] = (unsigned char)byte;
    while (words < 4) {
        uint64_t word = 0;
        int fits;
        for (i = 0; i < 64; i += 8) {
            seed += 0xA0761D6478BD642F;
            word |= (uint64_t)balanced[bloomline__mum(seed, seed ^ 0xE7037ED1A0B428DB) % 70] << i;
        }
        fits = word % 2 == 1;
        for (i = 0; i < words; i++) fits = fits && bloomline__ones(word ^ filter->secret[i]) == 32;
        if (fits) filter->secret[words++] = word;
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
    return 80 + bloomline__load(part + 48, 4) + 64 * bloomline__load8(part + 16);
}

static inline int bloomline_contains_hash(const bloomline *filter, uint64_t hash) {
    const uint64_t one = bloomline__mum(hash, 0x6A09E667F3BCC909), two = bloomline__mum(one, 0xBB67AE8584CAA73B);
    const unsigned char *part = filter->first;
    for (; part != filter->end; part += bloomline__part_length(part)) {
        const unsigned char *block =
            part + 64 + bloomline__load(part + 48, 4) + 64 * bloomline__high(hash, bloomline__load8(part + 16));
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
    return 0;
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
    const uint64_t version = length < 64 ? 0 : bloomline__load(header + 8, 4);
    if (length < 64) return bloomline__damaged(filter, "the file ends within a header, after bytes:", length);
    if (bloomline__xxh3(header, 56) != bloomline__load8(header + 56)) return bloomline__damaged(filter, "wrong checksum of header", 1);
    if (version < 2) return bloomline__refuse(filter, "the file is of version", version, "build the filter again");
    if (version > 2) return bloomline__refuse(filter, "the file is of version", version, "use a newer bloomline.h");
    return 0;
}

static inline int bloomline__check_fields(bloomline *filter, const unsigned char *at, size_t length) {
    size_t place = 0, last = 0, i;
    filter->key_name = "";
    filter->key_name_length = 0;
    if (length == 0) return 0;
    if (bloomline__xxh3(at, length - 8) != bloomline__load8(at + length - 8))
        return bloomline__damaged(filter, "wrong checksum of fields of length", length);
    while (place + 12 <= length && bloomline__load(at + place, 2) != 0) {
        const size_t tag = (size_t)bloomline__load(at + place, 2), size = (size_t)bloomline__load(at + place + 2, 2);
        const unsigned char *value = at + place + 4;
        const int is_inside = tag > last && size <= length - 8 - 4 - place;
        const uint64_t number = is_inside && size == 8 ? bloomline__load8(value) : 0;
        int fits = is_inside;
        if (tag == 0x8000 || tag > 0x8001) return bloomline__refuse(filter, "unknown field", tag, "use a newer bloomline.h");
        if (tag == 1) fits = fits && number > 0;
        if (tag == 2) fits = fits && number > 0 && number < 0x3FF0000000000000; /* the bits of a double between 0 and 1 */
        if (tag == 3) fits = fits && size >= 1 && size <= 1024;
        if (tag == 4) fits = fits && size == 0;
        if (tag == 5) fits = fits && size == 16;
        if (tag == 0x8001) fits = fits && size >= 2 && size <= 2048 && size % 2 == 0;
        if (!fits) return bloomline__damaged(filter, "invalid field", tag);
        if (tag == 3) {
            filter->key_name = (const char *)value;
            filter->key_name_length = size;
        }
        for (i = 0; tag == 0x8001 && i < size; i += 2) filter->kinds |= (unsigned)bloomline__load(value + i, 2);
        last = tag;
        place += 4 + size;
    }
    if (place == 0 || length != (place + 8 + 63) / 64 * 64) return bloomline__damaged(filter, "wrong length of fields:", length);
    for (; place < length - 8; place++)
        if (at[place] != 0) return bloomline__damaged(filter, "bytes after the fields, at", place);
    return 0;
}

/* Checks one filter at the start of these bytes. */
static inline int bloomline__check_part(bloomline *filter, const unsigned char *part, uint64_t length) {
    uint64_t layout, probes, blocks, fields, trailer, at, ones = 0;
    if (length < 8 || memcmp(part, "\x89" "BLOOM\r\n", 8) != 0)
        return bloomline__refuse(filter, "no filter begins where bytes remain:", length, "give a file that bloomline saved");
    if (bloomline__check_header(filter, part, length) != 0) return -1;
    layout = bloomline__load(part + 12, 2);
    probes = bloomline__load(part + 14, 2);
    blocks = bloomline__load8(part + 16);
    fields = bloomline__load(part + 48, 4);
    if (layout != 1) return bloomline__refuse(filter, "the filter has layout", layout, "only layout 1 (words4) can be read");
    if (probes == 0 || probes > 16 || probes % 4 != 0) return bloomline__damaged(filter, "invalid number of probes:", probes);
    if (blocks == 0 || blocks >> 57 != 0) return bloomline__damaged(filter, "invalid number of blocks:", blocks);
    if (fields % 64 != 0 || fields > 65536) return bloomline__damaged(filter, "invalid length of fields:", fields);
    if (bloomline__load8(part + 40) != 0 || bloomline__load(part + 52, 4) != 0)
        return bloomline__damaged(filter, "reserved bytes are not zero in header", 1);
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
    uint64_t parts = 1, merged = 0, flag = 0, rate;
    memset(filter, 0, sizeof *filter);
    if (is_series || is_rotating) {
        if (bloomline__check_header(filter, start, length) != 0) return -1;
        parts = bloomline__load(start + 12, 4);
        rate = bloomline__load8(start + 16);
        (is_series ? &merged : &flag)[0] = bloomline__load(start + (is_series ? 52 : 48), 4);
        if (parts < merged + (is_series ? 1 : 2) || parts - merged > 64 || merged > 255 || flag > 1)
            return bloomline__damaged(filter, "invalid number of parts:", parts);
        if (rate == 0 || rate >= 0x3FF0000000000000 || bloomline__load8(start + 24) == 0)
            return bloomline__damaged(filter, "invalid rate or first key count:", bloomline__load8(start + 24));
        if (bloomline__load(start + (is_series ? 48 : 52), 4) != 0)
            return bloomline__damaged(filter, "reserved bytes are not zero in header", 1);
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
    int error = file == NULL ? errno : 0, status = -1;
    memset(filter, 0, sizeof *filter);
    while (error == 0 && !feof(file)) {
        if (length == room) {
            room = room == 0 ? 65536 : room + room / 2;
            grown = (unsigned char *)realloc(bytes, room);
            if (grown == NULL) {
                error = ENOMEM;
                break;
            }
            bytes = grown;
        }
        length += fread(bytes + length, 1, room - length, file);
        if (ferror(file)) error = errno != 0 ? errno : EIO;
    }
    if (file != NULL) fclose(file);
    if (error != 0)
        snprintf(filter->error, sizeof filter->error, "%.100s: %s", path, strerror(error));
    else
        status = bloomline_view(filter, bytes, length);
    if (status != 0)
        free(bytes);
    else
        filter->owned = bytes;
    return status;
}

static inline void bloomline_close(bloomline *filter) {
    free(filter->owned);
    memset(filter, 0, sizeof *filter);
}

#endif
