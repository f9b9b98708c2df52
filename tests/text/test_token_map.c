/* Engram's token map: the reference maps, the traps of the rule, and the cache. */
#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "text/token_map_cache.h"
#include "text/tokenizer_check.h"

static void test_tiny_reference_map(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(TINY_TOKENIZER);
    pl_token_map map;
    pl_error err;
    pl_buf expected;
    pl_buf_init(&expected, 1 << 20, "map");
    assert_int_equal(pl_file_read(&expected, "tests/vectors/tiny-a/model/engram_token_map.u32", &err), PL_OK);
    assert_int_equal(pl_token_map_build(&map, tok, &err), PL_OK);
    assert_int_equal(expected.len, 4 * map.size);
    for (size_t i = 0; i < map.size; i++) {
        const unsigned char *e = (const unsigned char *)expected.data + 4 * i;
        assert_int_equal(map.map[i], e[0] | e[1] << 8 | e[2] << 16 | e[3] << 24);
    }
    assert_int_equal(map.classes, 427);
    pl_token_map_close(&map);
    pl_buf_free(&expected);
    pl_tokenizer_close(tok);
}

static void test_nano_has_the_classes_of_its_config(void **state)
{
    (void)state;
    pl_tokenizer *tok = load_tokenizer(NANO_TOKENIZER);
    pl_token_map map;
    pl_error err;
    assert_int_equal(pl_token_map_build(&map, tok, &err), PL_OK);
    assert_int_equal(map.classes, 6346);
    assert_int_equal(map.size, 8192);
    pl_token_map_close(&map);
    pl_tokenizer_close(tok);
}

/* Does token `a` share the class of token `b` in a tokenizer with these extra tokens (ids from 256)? */
static bool alike(const char *vocab, int a, int b)
{
    pl_tokenizer *tok = small_tokenizer(vocab, "", "");
    pl_token_map map;
    pl_error err;
    assert_int_equal(pl_token_map_build(&map, tok, &err), PL_OK);
    bool same = map.map[a] == map.map[b];
    pl_token_map_close(&map);
    pl_tokenizer_close(tok);
    return same;
}

static void test_the_rule(void **state)
{
    (void)state;
    assert_true(alike("", 'A', 'a'));
    assert_true(alike(",\"Ġa\":256", 'a', 256)); /* trimmed */
    assert_true(alike(",\"aĠ\":256", 'a', 256));
    assert_true(alike(",\"ĉĠ\":256", ' ', 256)); /* blanks: one space, which stays */
    assert_true(alike("", ' ', '\n'));
    assert_false(alike("", ' ', '\v'));                      /* U+000B is trimmed away: the text itself is the key */
    assert_true(alike(",\"Ã©\":256", 'e', 256));             /* é */
    assert_true(alike(",\"eÌģ\":256", 'e', 256));            /* e and U+0301 */
    assert_true(alike(",\"ï¬ģ\":256,\"fi\":257", 256, 257)); /* the ligature fi, by NFKC */
    assert_true(alike(",\"Ä°\":256", 'i', 256));             /* U+0130: I and a dot that is dropped, then lowered */
    assert_true(alike(",\"aĠĠĠb\":256,\"aĠb\":257", 256, 257));
    assert_false(alike(",\"ab\":256,\"aĠb\":257", 256, 257));
    assert_false(alike(",\"Ìģ\":256,\"Ìĥ\":257", 256, 257)); /* a mark alone leaves nothing: its text is the key */
    assert_false(alike("", 0xc3, 0xc4));                     /* bytes that are no text keep their spellings */
}

/* A spelling is a key like any other: the byte E3 is written with the letter that is also the text of another token. */
static void test_one_name_space(void **state)
{
    (void)state;
    assert_true(alike(",\"Ã¦\":256", 0xe6, 256));  /* the byte E6 is spelled U+00E6; id 256 is the text U+00E6 */
    assert_false(alike(",\"Ã¦\":256", 0xc6, 256)); /* the spelling of C6, U+00C6, is not lowered */
}

static void test_gaps_have_no_class(void **state)
{
    (void)state;
    pl_tokenizer *tok = small_tokenizer(",\"ab\":258", "", "");
    pl_token_map map;
    pl_error err;
    assert_fails(PL_EFORMAT, &err, pl_token_map_build(&map, tok, &err));
    assert_non_null(strstr(err.message, "256"));
    assert_null(map.map);
    pl_tokenizer_close(tok);
}

typedef struct cache_test {
    char dir[64];
    char *path; /* of the one file */
    pl_tokenizer *tok;
} cache_test;

static int cache_setup(void **state)
{
    static cache_test t;
    pl_log_set_level(PL_LOG_ERROR);
    make_folder(t.dir);
    t.tok = load_tokenizer(TINY_TOKENIZER);
    char name[96] = "token-map-";
    for (int i = 0; i < 32; i++)
        snprintf(name + 10 + 2 * i, 3, "%02x", pl_tokenizer_sha256(t.tok)[i]);
    memcpy(name + 74, ".bin", 5);
    t.path = pl_path_join(t.dir, name);
    *state = &t;
    return 0;
}

static int cache_teardown(void **state)
{
    cache_test *t = *state;
    unlink(t->path);
    rmdir(t->dir);
    free(t->path);
    pl_tokenizer_close(t->tok);
    return 0;
}

static void open_map(const cache_test *t, const char *dir, bool cached)
{
    pl_token_map map, built;
    pl_error err;
    assert_int_equal(pl_token_map_open(&map, t->tok, 512, 427, dir, &err), PL_OK);
    assert_int_equal(map.cached, cached);
    assert_int_equal(pl_token_map_build(&built, t->tok, &err), PL_OK);
    assert_int_equal(map.size, built.size);
    assert_int_equal(map.classes, built.classes);
    assert_memory_equal(map.map, built.map, 4 * built.size);
    pl_token_map_close(&map);
    pl_token_map_close(&built);
}

static void test_kept_and_found(void **state)
{
    cache_test *t = *state;
    open_map(t, t->dir, false);
    open_map(t, t->dir, true);
    assert_int_equal(unlink(t->path), 0);
    open_map(t, t->dir, false);
}

/* Any byte changed, any length: not used, written anew. */
static void test_a_broken_file_is_written_anew(void **state)
{
    cache_test *t = *state;
    pl_buf good;
    pl_error err;
    open_map(t, t->dir, false);
    pl_buf_init(&good, 1 << 20, "file");
    assert_int_equal(pl_file_read(&good, t->path, &err), PL_OK);
    assert_int_equal(good.len, 64 + 4 * 512 + 32);
    for (size_t at = 0; at < good.len; at++) {
        pl_token_map map;
        good.data[at] ^= 0x10;
        assert_fails(PL_EFORMAT, &err,
                     pl__token_map_read(&map, (const unsigned char *)good.data, good.len, pl_tokenizer_sha256(t->tok),
                                        512, &err));
        assert_null(map.map);
        if (at % 600 == 0) {
            assert_int_equal(pl_file_put(t->path, good.data, good.len, &err), PL_OK);
            open_map(t, t->dir, false);
            open_map(t, t->dir, true);
        }
        good.data[at] ^= 0x10;
    }
    static const size_t lengths[] = {0, 1, 63, 64, 95, 96, 64 + 4 * 512 + 31};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_int_equal(pl_file_put(t->path, good.data, lengths[i], &err), PL_OK);
        open_map(t, t->dir, false);
    }
    pl_buf_free(&good);
}

static void test_read_checks_the_numbering(void **state)
{
    cache_test *t = *state;
    static const uint32_t cases[][4] = {{0, 1, 1, 0}, {0, 2, 1, 0}, {1, 0, 0, 0}, {0, 0, 0, 0}, {0, 1, 2, 9}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t classes[4];
        memcpy(classes, cases[i], sizeof classes);
        pl_token_map map = {.map = classes, .size = 4, .classes = 2}, back;
        pl_buf file;
        pl_error err;
        pl_buf_init(&file, 1 << 20, "file");
        assert_int_equal(pl__token_map_write(&map, pl_tokenizer_sha256(t->tok), &file, &err), PL_OK);
        pl_status status =
            pl__token_map_read(&back, (const unsigned char *)file.data, file.len, pl_tokenizer_sha256(t->tok), 4, &err);
        assert_int_equal(status, i == 0 ? PL_OK : PL_EFORMAT);
        assert_int_equal(back.classes, i == 0 ? 2 : 0);
        pl_token_map_close(&back);
        pl_buf_free(&file);
    }
}

static void test_another_count_is_refused(void **state)
{
    cache_test *t = *state;
    pl_token_map map;
    pl_error err;
    for (int again = 0; again < 2; again++) { /* computed, then from the cache */
        assert_fails(PL_EFORMAT, &err, pl_token_map_open(&map, t->tok, 512, 426, t->dir, &err));
        assert_non_null(strstr(err.message, TINY_TOKENIZER ": expected tokens of 426 classes"));
        assert_non_null(strstr(err.message, "found 427"));
        assert_null(map.map);
    }
    assert_fails(PL_EFORMAT, &err, pl_token_map_open(&map, t->tok, 511, 427, t->dir, &err));
    assert_non_null(strstr(err.message, TINY_TOKENIZER ": expected 511 token ids"));
    assert_non_null(strstr(err.message, "found 512"));
}

static void test_a_cache_that_cannot_be_is_no_fault(void **state)
{
    cache_test *t = *state;
    pl_error err;
    assert_int_equal(pl_file_put(t->path, "x", 1, &err), PL_OK);
    open_map(t, t->path, false); /* a file where the folder should be */
    open_map(t, "/proc/none/here", false);
}

static void test_folder(void **state)
{
    (void)state;
    struct {
        const char *given, *own, *xdg, *home, *expected;
    } cases[] = {
        {"/given", "/own", "/xdg", "/house/x", "/given"},
        {NULL, "/own", "/xdg", "/house/x", "/own"},
        {"", NULL, "/xdg", "/house/x", "/xdg/paceline"},
        {NULL, "", "relative", "/house/x", "/house/x/.cache/paceline"},
        {NULL, NULL, NULL, NULL, NULL},
    };
    const char *names[] = {"PACELINE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *values[] = {cases[i].own, cases[i].xdg, cases[i].home};
        for (int k = 0; k < 3; k++)
            assert_int_equal(values[k] ? setenv(names[k], values[k], 1) : unsetenv(names[k]), 0);
        char *dir = pl__token_map_dir(cases[i].given);
        if (cases[i].expected)
            assert_string_equal(dir, cases[i].expected);
        else
            assert_null(dir);
        free(dir);
    }
}

static void test_folders_are_made(void **state)
{
    cache_test *t = *state;
    char *deep = pl_path_join(t->dir, "a/b"), *a = pl_path_join(t->dir, "a");
    open_map(t, deep, false);
    open_map(t, deep, true);
    char *file = pl_path_join(deep, strrchr(t->path, '/') + 1);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(rmdir(a), 0);
    free(file);
    free(deep);
    free(a);
}

#define CACHE_TEST(f) cmocka_unit_test_setup_teardown(f, cache_setup, cache_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tiny_reference_map),
        cmocka_unit_test(test_nano_has_the_classes_of_its_config),
        cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_one_name_space),
        cmocka_unit_test(test_gaps_have_no_class),
        CACHE_TEST(test_kept_and_found),
        CACHE_TEST(test_a_broken_file_is_written_anew),
        CACHE_TEST(test_read_checks_the_numbering),
        CACHE_TEST(test_another_count_is_refused),
        CACHE_TEST(test_a_cache_that_cannot_be_is_no_fault),
        CACHE_TEST(test_folders_are_made),
        cmocka_unit_test(test_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
