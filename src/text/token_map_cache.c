/* The cache of token maps: one file a tokenizer, token-map-SHA256.bin, all numbers little-endian.
 *
 *        0  "PLTOKMAP"             8 bytes
 *        8  version                u32: the rule of token_map.c and this layout; another number is another file
 *       12  ids                    u32: N
 *       16  classes                u32: C
 *       20  zero                   u32
 *       24  Unicode version        8 bytes, utf8proc's, zero-padded: other data may give another map
 *       32  tokenizer              32 bytes: SHA-256 of the tokenizer.json
 *       64  class of each id       N x u32
 *   64+4N   check                  32 bytes: SHA-256 of all bytes before
 *
 * Classes are numbered in order of first appearance, which is checked too. A file that breaks any of this is not used
 * and is written anew. */
#include "text/token_map_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <utf8proc.h>

#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"

enum { VERSION = 1, HEADER = 64, CHECK = 32, FILE_CAP = HEADER + CHECK + 4 * PL_TOKENIZER_IDS_MAX };

static void put_u32(unsigned char *out, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t get_u32(const unsigned char *in)
{
    return in[0] | (uint32_t)in[1] << 8 | (uint32_t)in[2] << 16 | (uint32_t)in[3] << 24;
}

static void make_header(unsigned char header[HEADER], size_t ids, uint32_t classes, const unsigned char sha256[32])
{
    memset(header, 0, HEADER);
    memcpy(header, "PLTOKMAP", 8);
    put_u32(header + 8, VERSION);
    put_u32(header + 12, (uint32_t)ids);
    put_u32(header + 16, classes);
    const char *unicode = utf8proc_unicode_version();
    memcpy(header + 24, unicode, strnlen(unicode, 8));
    memcpy(header + 32, sha256, 32);
}

static void make_check(const void *bytes, size_t len, unsigned char check[CHECK])
{
    pl_sha256 sha;
    pl_sha256_init(&sha);
    pl_sha256_add(&sha, bytes, len);
    pl_sha256_digest(&sha, check);
}

pl_status pl__token_map_write(const pl_token_map *map, const unsigned char sha256[32], pl_buf *out, pl_error *err)
{
    unsigned char header[HEADER], check[CHECK], word[4];
    size_t start = out->len;
    make_header(header, map->size, map->classes, sha256);
    PL_TRY(pl_buf_add(out, header, HEADER, err));
    for (size_t i = 0; i < map->size; i++) {
        put_u32(word, map->map[i]);
        PL_TRY(pl_buf_add(out, word, 4, err));
    }
    make_check(out->data + start, out->len - start, check);
    return pl_buf_add(out, check, CHECK, err);
}

pl_status pl__token_map_read(pl_token_map *out, const unsigned char *bytes, size_t len, const unsigned char sha256[32],
                             size_t ids, pl_error *err)
{
    *out = (pl_token_map){0};
    if (len < HEADER || len != HEADER + CHECK + 4 * ids)
        return pl_fail(err, PL_EFORMAT, "token map: expected %zu bytes, found %zu", HEADER + CHECK + 4 * ids, len);
    unsigned char header[HEADER], check[CHECK];
    uint32_t classes = get_u32(bytes + 16), next = 0;
    make_header(header, ids, classes, sha256);
    if (memcmp(header, bytes, HEADER) != 0)
        return pl_fail(err, PL_EFORMAT,
                       "token map: made from another tokenizer, by another version or with other data");
    make_check(bytes, len - CHECK, check);
    if (memcmp(check, bytes + len - CHECK, CHECK) != 0)
        return pl_fail(err, PL_EFORMAT, "token map: the check sum does not fit");
    uint32_t *map = malloc((ids + 1) * sizeof *map);
    if (!map)
        return pl_fail(err, PL_ENOMEM, "no memory for the token map of %zu ids", ids);
    size_t i = 0;
    for (; i < ids; i++) {
        map[i] = get_u32(bytes + HEADER + 4 * i);
        if (map[i] > next || map[i] >= classes)
            break;
        next += map[i] == next;
    }
    if (i < ids || next != classes) {
        free(map);
        return pl_fail(err, PL_EFORMAT, "token map: the classes are not 0 to %u in order of appearance", classes);
    }
    *out = (pl_token_map){.map = map, .size = ids, .classes = classes, .cached = true};
    return PL_OK;
}

static const char *env(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

char *pl__token_map_dir(const char *cache_dir)
{
    const char *dir = cache_dir && *cache_dir ? cache_dir : env("PACELINE_CACHE_DIR");
    if (dir)
        return strdup(dir);
    dir = env("XDG_CACHE_HOME");
    if (dir && dir[0] == '/') /* the XDG rule: a relative one is to be ignored */
        return pl_path_join(dir, "paceline");
    dir = env("HOME");
    return dir ? pl_path_join(dir, ".cache/paceline") : NULL;
}

/* Make dir and the folders above it that are missing. */
static bool make_dirs(char *dir)
{
    for (char *slash = strchr(dir + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        int failed = mkdir(dir, 0777) != 0 && errno != EEXIST;
        *slash = '/';
        if (failed)
            return false;
    }
    return mkdir(dir, 0777) == 0 || errno == EEXIST;
}

/* Write what was computed, so that the next start need not. Where it cannot be, that start takes its time, no more. */
static void keep(const pl_token_map *map, const pl_tokenizer *tok, char *dir, const char *path)
{
    static const char not_kept[] = "the token map is not kept, --cache-dir may name another folder: %s: %s";
    pl_error err = {0};
    pl_buf bytes;
    pl_buf_init(&bytes, FILE_CAP, "token map");
    if (!make_dirs(dir))
        pl_log(PL_LOG_DEBUG, not_kept, dir, strerror(errno));
    else if (pl__token_map_write(map, pl_tokenizer_sha256(tok), &bytes, &err) != PL_OK ||
             pl_file_put(path, bytes.data, bytes.len, &err) != PL_OK)
        pl_log(PL_LOG_DEBUG, not_kept, path, err.message);
    pl_buf_free(&bytes);
}

/* dir/token-map-SHA256.bin in fresh memory, NULL without memory. */
static char *file_name(const char *dir, const pl_tokenizer *tok)
{
    char name[96];
    int n = snprintf(name, sizeof name, "token-map-");
    for (int i = 0; i < 32; i++)
        n += snprintf(name + n, sizeof name - (size_t)n, "%02x", pl_tokenizer_sha256(tok)[i]);
    snprintf(name + n, sizeof name - (size_t)n, ".bin");
    return pl_path_join(dir, name);
}

/* From the cache; false when there is no good file. *writable: one may be written in its place. Not where something
 * other than a file stands: a write to a pipe would wait for its reader. */
static bool fetch(pl_token_map *out, const pl_tokenizer *tok, const char *path, bool *writable)
{
    pl_error err = {0};
    pl_buf bytes;
    pl_buf_init(&bytes, FILE_CAP, "token map");
    pl_status status = pl_file_read(&bytes, path, &err);
    if (status == PL_OK)
        status = pl__token_map_read(out, (const unsigned char *)(bytes.data ? bytes.data : ""), bytes.len,
                                    pl_tokenizer_sha256(tok), (size_t)pl_tokenizer_size(tok), &err);
    *writable = status != PL_EIO;
    if (status == PL_EIO)
        pl_log(PL_LOG_DEBUG, "%s is not used: %s", path, err.message);
    else if (status != PL_OK && status != PL_ENOTFOUND)
        pl_log(PL_LOG_INFO, "%s is not used and written anew: %s", path, err.message);
    pl_buf_free(&bytes);
    return status == PL_OK;
}

pl_status pl_token_map_open(pl_token_map *out, const pl_tokenizer *tok, int64_t vocab, int64_t classes,
                            const char *cache_dir, pl_error *err)
{
    *out = (pl_token_map){0};
    if (pl_tokenizer_size(tok) != vocab)
        return pl_fail(err, PL_EFORMAT, "%s: expected %lld token ids (the model's vocab_size), found %d",
                       pl_tokenizer_where(tok), (long long)vocab, (int)pl_tokenizer_size(tok));
    char *dir = pl__token_map_dir(cache_dir);
    char *path = dir ? file_name(dir, tok) : NULL;
    pl_status status = PL_OK;
    bool writable = false;
    if (!path || !fetch(out, tok, path, &writable)) {
        status = pl_token_map_build(out, tok, err);
        if (status == PL_OK && writable)
            keep(out, tok, dir, path);
    }
    free(path);
    free(dir);
    if (status == PL_OK && out->classes != classes) {
        status =
            pl_fail(err, PL_EFORMAT,
                    "%s: expected tokens of %lld classes (the model's engram_compressed_vocab_size), found %u: not "
                    "the tokenizer of this model",
                    pl_tokenizer_where(tok), (long long)classes, out->classes);
        pl_token_map_close(out);
    }
    return status;
}
