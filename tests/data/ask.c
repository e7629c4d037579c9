/* Asks filters by include/bloomline.h.
 *
 * With arguments, opens each of these files, and prints the name of its keys, their kinds and whether it contains `bloom`, or the error.
 * Without, reads records of lengths (4 bytes, little-endian) and their bytes from standard input: a file, the number of keys, and the keys.
 * Prints a line for each file: 0 or 1 for each key, or `-` and the error. */
#include "../../include/bloomline.h"

static int read_number(size_t *number) {
    unsigned char bytes[4];
    if (fread(bytes, 1, 4, stdin) != 4) return 0;
    *number = bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 24;
    return 1;
}

/* Memory of exactly this length, so that a sanitizer finds reads beyond it. */
static unsigned char *read_bytes(size_t length) {
    unsigned char *bytes = (unsigned char *)malloc(length);
    if (length > 0 && (bytes == NULL || fread(bytes, 1, length, stdin) != length)) exit(2);
    return bytes;
}

int main(int count, char **paths) {
    bloomline filter;
    size_t length, keys;
    int i;
    for (i = 1; i < count; i++) {
        if (bloomline_open(&filter, paths[i]) != 0) {
            printf("- %s\n", filter.error);
            /* A filter that is not open denies no key. */
            if (!bloomline_contains(&filter, "bloom", 5)) return 3;
        } else {
            printf("%.*s %x %d\n", (int)filter.key_name_length, filter.key_name, filter.kinds, bloomline_contains(&filter, "bloom", 5));
            bloomline_close(&filter);
        }
    }
    while (count == 1 && read_number(&length)) {
        unsigned char *file = read_bytes(length);
        const int refused = bloomline_view(&filter, file, length);
        if (!read_number(&keys)) return 2;
        if (refused) printf("- %s", filter.error);
        for (; keys > 0; keys--) {
            unsigned char *key;
            if (!read_number(&length)) return 2;
            key = read_bytes(length);
            if (!refused) putchar('0' + bloomline_contains(&filter, key, length));
            free(key);
        }
        putchar('\n');
        fflush(stdout);
        free(file);
    }
    return 0;
}
