/* The tensors a config implies: exact figures of the release and of the two checkpoints in the repository. */
#include "base/check.h"

#include "checkpoint/inventory.h"
#include "checkpoint/primes.h"

static void tally(const char *path, pl_config *c, pl_tally *t)
{
    pl_error err = {0};
    if (pl_config_load(c, path, &err) != PL_OK)
        fail_msg("%s", err.message);
    pl_tally_config(c, t);
}

static void release_figures(void **state)
{
    (void)state;
    static const uint64_t bytes[PL_PARTS] = {/* model spec 5.4 */
                                             [PL_PART_EXPERTS] = 288777830400,   [PL_PART_ENGRAM_TABLES] = 202758032400,
                                             [PL_PART_ENGRAM] = 315043840,       [PL_PART_ATTENTION] = 5069721600,
                                             [PL_PART_COMPRESSOR] = 81835008,    [PL_PART_SHARED_EXPERTS] = 1416960000,
                                             [PL_PART_GATE] = 157409280,         [PL_PART_HC] = 157295040,
                                             [PL_PART_NORMS] = 829440,           [PL_PART_EMBED] = 1323827200,
                                             [PL_PART_HEAD] = 1323827200,        [PL_PART_DRAFT_EXPERTS] = 7219445760,
                                             [PL_PART_DRAFT_BLOCKS] = 502294920, [PL_PART_DRAFT_HEADS] = 211133952,
                                             [PL_PART_VISION] = 970536960};
    pl_config c;
    pl_tally t;
    tally("tests/vectors/release/config.json", &c, &t);
    assert_int_equal(t.total_tensors, 96085);
    assert_int_equal(t.total_bytes, 510286023000);
    for (int p = 0; p < PL_PARTS; p++)
        assert_int_equal(t.bytes[p], bytes[p]);
    assert_int_equal(pl_inventory_shards(&c), 48);
}

static void other_figures(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int64_t tensors;
        uint64_t bytes;
    } known[] = {
        {"models/nano/config.json", 1542, 29993516},
        {"tests/vectors/tiny-a/model/config.json", 939 - 3, 4097108 - 3 * 256}}; /* its image tokens are extras */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        pl_config c;
        pl_tally t;
        tally(known[i].path, &c, &t);
        assert_int_equal(t.total_tensors, known[i].tensors);
        assert_int_equal(t.total_bytes, known[i].bytes);
        assert_int_equal(t.tensors[PL_PART_VISION], 0);
    }
}

typedef struct types {
    int64_t count[5];
    int shard;
    char first[48][80];
    int64_t visited;
} types;

static pl_status visit(void *arg, const pl_item *item, pl_error *err)
{
    types *t = arg;
    (void)err;
    t->count[item->dtype]++;
    t->visited++;
    assert_true(item->shard == t->shard || item->shard == t->shard + 1);
    if (item->shard != t->shard) {
        t->shard = item->shard;
        snprintf(t->first[t->shard], sizeof t->first[0], "%s", item->name);
    }
    assert_int_equal(item->bytes, item->dim[0] * (item->rank == 2 ? item->dim[1] : 1) * pl_dtype_size(item->dtype));
    return PL_OK;
}

static void release_types_and_shards(void **state)
{
    (void)state;
    pl_config c;
    pl_tally t;
    tally("tests/vectors/release/config.json", &c, &t);
    static types seen;
    seen = (types){.shard = -1};
    assert_int_equal(pl_inventory_each(&c, visit, &seen, NULL), PL_OK);
    /* model spec section 2 */
    assert_int_equal(seen.count[PL_BF16], 520);
    assert_int_equal(seen.count[PL_F32], 387);
    assert_int_equal(seen.count[PL_F8_E4M3], 357);
    assert_int_equal(seen.count[PL_F8_E8M0], 47589);
    assert_int_equal(seen.count[PL_I8], 47232);
    assert_int_equal(seen.shard, 47);
    assert_string_equal(seen.first[1], "embed.weight");
    assert_string_equal(seen.first[2], "layers.0.attn_norm.weight");
    assert_string_equal(seen.first[42], "norm.weight");
    assert_string_equal(seen.first[43], "mtp.0.main_proj.weight");
    assert_string_equal(seen.first[46], "layers.1.engram.embed.weight");
    assert_string_equal(seen.first[47], "layers.14.engram.embed.weight");
}

static void count_equals_walk(void **state)
{
    (void)state;
    static const char *const paths[] = {"tests/vectors/release/config.json", "models/nano/config.json",
                                        "tests/vectors/tiny-a/model/config.json", "tests/checkpoint/small.json"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        pl_config c;
        pl_tally t;
        tally(paths[i], &c, &t);
        assert_int_equal(pl_inventory_count(&c), t.total_tensors);
    }
}

static pl_status stop_at_third(void *arg, const pl_item *item, pl_error *err)
{
    (void)item;
    return ++*(int *)arg == 3 ? pl_fail(err, PL_ECANCELED, "enough") : PL_OK;
}

static void walk_stops_at_a_failure(void **state)
{
    (void)state;
    pl_config c;
    pl_tally t;
    pl_error err;
    int calls = 0;
    tally("tests/vectors/release/config.json", &c, &t);
    assert_fails(PL_ECANCELED, &err, pl_inventory_each(&c, stop_at_third, &calls, &err));
    assert_int_equal(calls, 3);
}

static void ignored_names(void **state)
{
    (void)state;
    static const char *const yes[] = {"vision.x", "aligner.w1.weight", "image_start", "mtp.0.embed.weight",
                                      "mtp.12.head.weight"};
    static const char *const no[] = {
        "visionary",           "mtp.embed.weight", "mtp.x.head.weight", "layers.0.head.weight",
        "mtp.0.header.weight", "head.weight",      "embed.weight",      ""};
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        assert_true(pl_inventory_ignores(yes[i]));
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        assert_false(pl_inventory_ignores(no[i]));
}

static void primes(void **state)
{
    (void)state;
    bool composite[10000] = {true, true};
    for (unsigned i = 2; i < 10000; i++) {
        for (unsigned j = 2 * i; j < 10000; j += i)
            composite[j] = true;
        assert_int_equal(pl_is_prime(i), !composite[i]);
    }
    assert_true(pl_is_prime(4294967291u));
    assert_false(pl_is_prime(4294967295u));
    assert_false(pl_is_prime(3215031751u)); /* a strong pseudoprime to bases 2, 3, 5 and 7 */
    assert_int_equal(pl_next_prime(16000000), 16000057);
    assert_int_equal(pl_next_prime(61), 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(release_figures),
        cmocka_unit_test(other_figures),
        cmocka_unit_test(release_types_and_shards),
        cmocka_unit_test(count_equals_walk),
        cmocka_unit_test(ignored_names),
        cmocka_unit_test(primes),
        cmocka_unit_test(walk_stops_at_a_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
