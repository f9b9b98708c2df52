/* The accept log: a line of JSON a round whose sums are the replies' own numbers; a log that cannot be written. */
#include "lanes/core_kit.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

enum { STREAMS = 5, PROMPT = 40 };

typedef struct sums {
    pl_numbers numbers;
    uint64_t lines, agreed, heads;
} sums;

static int any_right(void *arg, int slot)
{
    (void)slot;
    uint64_t *state = arg;
    *state += 0x9e3779b97f4a7c15u;
    return (int)(pair_mix(*state) % (PAIR_BLOCK + 1));
}

static float any_confidence(void *arg)
{
    uint64_t *state = arg;
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = pair_mix(*state);
    return z % 9 == 0 ? NAN : z % 11 == 0 ? INFINITY : (float)(z % 600) / 100 - 3;
}

/* Some replies beside each other: greedy, sampled, without drafts, and two that mostly repeat a token. */
static void run_replies(kit *k, uint64_t *random)
{
    static int32_t prompt[PROMPT];
    static pl_bias often[] = {{.token = 17, .add = 4}};
    k->pair.right = any_right;
    k->pair.confidence = any_confidence;
    k->pair.arg = random;
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = i % 10;
    for (int i = 0; i < STREAMS; i++) {
        pl_request q = kit_request(prompt, PROMPT - (size_t)i, 30 + 7 * i);
        q.sampling.temperature = i % 2 ? 1 : 0;
        q.sampling.seed = (uint64_t)i;
        q.draft = i != 3;
        q.sampling.bias = often;
        q.sampling.biases = i == 2 || i == 4;
        kit_admit(k, kit_stream(k, &q));
        for (int step = 0; step < 4; step++)
            kit_step(k);
    }
    kit_run(k);
}

static void open_log(kit *k, const char *path)
{
    pl_core_settings settings = {.drafts = true, .plain_streams = 4, .joint = 1, .accept_log = path};
    kit_open(k, STREAMS, PAIR_ROWS, &settings);
}

static uint64_t number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        fail_msg("%s: a count expected", name);
    return (uint64_t)json_integer_value(value);
}

static void add_lane(const json_t *lane, sums *s)
{
    const char *source = json_string_value(json_object_get(lane, "source"));
    uint64_t depth = number_of(lane, "depth"), accepted = number_of(lane, "accepted"), slot = number_of(lane, "slot");
    assert_non_null(source);
    assert_true(accepted <= depth && slot < STREAMS);
    bool copy = !strcmp(source, "copy");
    assert_true(copy || !strcmp(source, depth ? "head" : "none"));
    assert_true(json_is_boolean(json_object_get(lane, "sampled")));
    assert_int_equal(json_object_get(lane, "match") != NULL, copy);
    const json_t *confidence = json_object_get(lane, "confidence");
    if (confidence) { /* of all five proposals, verified or not; what is no number is null */
        assert_int_equal(json_array_size(confidence), PAIR_BLOCK);
        for (size_t i = 0; i < PAIR_BLOCK; i++)
            assert_true(json_is_number(json_array_get(confidence, i)) || json_is_null(json_array_get(confidence, i)));
        assert_true(number_of(lane, "agreed") <= PAIR_BLOCK);
        s->agreed += number_of(lane, "agreed");
        s->heads++;
    }
    s->numbers.rounds++;
    s->numbers.plain_rounds += depth == 0 && !confidence;
    s->numbers.rows += depth + 1;
    s->numbers.drafted += depth;
    s->numbers.accepted += accepted;
    s->numbers.copied += copy ? depth : 0;
    s->numbers.copied_kept += copy ? accepted : 0;
}

static void add_line(const char *line, uint64_t number, sums *s)
{
    json_error_t why;
    json_t *round = json_loads(line, JSON_REJECT_DUPLICATES, &why);
    if (!round)
        fail_msg("line %d is no JSON: %s: %s", (int)number, why.text, line);
    assert_int_equal(number_of(round, "round"), number);
    const json_t *lanes = json_object_get(round, "lanes"), *ms = json_object_get(round, "ms");
    uint64_t rows_before = s->numbers.rows, heads_before = s->heads;
    assert_int_equal(json_array_size(lanes), number_of(round, "streams"));
    assert_true(json_array_size(lanes) > 0);
    for (size_t i = 0; i < json_array_size(lanes); i++)
        add_lane(json_array_get(lanes, i), s);
    assert_int_equal(number_of(round, "rows"), s->numbers.rows - rows_before);
    assert_int_equal(number_of(round, "asks"), s->heads - heads_before);
    s->numbers.asks += number_of(round, "asks");
    static const char *const parts[] = {"host", "ingest", "propose", "verify", "draw", "conclude"};
    assert_int_equal(json_object_size(ms), 6);
    for (size_t i = 0; i < 6; i++)
        assert_true(json_is_number(json_object_get(ms, parts[i])) &&
                    json_number_value(json_object_get(ms, parts[i])) >= 0);
    json_decref(round);
    s->lines++;
}

static sums read_log(const char *path)
{
    static char line[1 << 16];
    sums s = {0};
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        assert_true(line[strlen(line) - 1] == '\n');
        add_line(line, s.lines, &s);
    }
    fclose(f);
    return s;
}

static void same_numbers(const pl_numbers *a, const pl_numbers *b)
{
    assert_int_equal(a->rounds, b->rounds);
    assert_int_equal(a->plain_rounds, b->plain_rounds);
    assert_int_equal(a->rows, b->rows);
    assert_int_equal(a->asks, b->asks);
    assert_int_equal(a->drafted, b->drafted);
    assert_int_equal(a->accepted, b->accepted);
    assert_int_equal(a->copied, b->copied);
    assert_int_equal(a->copied_kept, b->copied_kept);
}

static void lines_add_up_to_the_replies(void **state)
{
    (void)state;
    char dir[64], path[96];
    uint64_t random = 7, tokens = 0;
    kit k;
    make_folder(dir);
    snprintf(path, sizeof path, "%s/accept.jsonl", dir);
    open_log(&k, path);
    run_replies(&k, &random);
    pl_numbers all = {0};
    for (int i = 0; i < STREAMS; i++) {
        pl_numbers_add(&all, &k.ending[i].outcome.numbers);
        tokens += k.ending[i].outcome.tokens;
    }
    pl_numbers totals = k.core.totals.numbers;
    uint64_t launches = k.core.totals.launches;
    sums live = read_log(path); /* whole lines while it is open */
    kit_close(&k);
    sums s = read_log(path);
    print_message("%d rounds, %d windows, %d drafts, %d kept, %d of %d copied ones kept, %d asks\n", (int)s.lines,
                  (int)all.rounds, (int)all.drafted, (int)all.accepted, (int)all.copied_kept, (int)all.copied,
                  (int)all.asks);
    assert_int_equal(live.lines, s.lines);
    assert_int_equal(s.lines, launches);
    same_numbers(&s.numbers, &all);
    same_numbers(&s.numbers, &totals);
    assert_int_equal(tokens, STREAMS + all.rounds + all.accepted); /* one of each prompt, one a window, drafts kept */
    assert_true(all.accepted > 0 && all.copied > 0 && all.asks > 0 && all.plain_rounds > 0 && s.agreed > 0);
    unlink(path);
    rmdir(dir);
}

static void a_log_is_appended_to(void **state)
{
    (void)state;
    char dir[64], path[96];
    uint64_t random = 7;
    struct stat before, after;
    make_folder(dir);
    snprintf(path, sizeof path, "%s/accept.jsonl", dir);
    for (int run = 0; run < 2; run++) {
        kit k;
        open_log(&k, path);
        if (run == 0)
            run_replies(&k, &random);
        kit_close(&k);
        assert_int_equal(stat(path, run ? &after : &before), 0);
    }
    assert_true(before.st_size > 0);
    assert_int_equal(before.st_size, after.st_size);
    unlink(path);
    rmdir(dir);
}

static void a_path_that_cannot_be_opened_is_named(void **state)
{
    (void)state;
    char dir[64], path[96];
    pl_error err;
    static pair p;
    static pl__core core;
    make_folder(dir);
    pair_init(&p, 2, 16);
    snprintf(path, sizeof path, "%s/none/accept.jsonl", dir);
    pl_core_settings settings = {.drafts = true, .joint = 1, .accept_log = path};
    assert_fails(PL_EIO, &err, pl__core_open(&core, &p.target, &p.drafter, &settings, kit_left, NULL, &err));
    assert_string_equal(err.param, "accept-log");
    assert_non_null(strstr(err.message, path));
    settings.accept_log = dir; /* a folder */
    assert_fails(PL_EIO, &err, pl__core_open(&core, &p.target, &p.drafter, &settings, kit_left, NULL, &err));
    assert_non_null(strstr(err.message, dir));
    /* And by the engine, whose thread must not be left behind. */
    pl_engine *engine = NULL;
    pl_engine_settings all = {.queue = 4, .core = settings};
    assert_fails(PL_EIO, &err, pl_engine_open(&engine, &p.target, &p.drafter, &all, &err));
    assert_string_equal(err.param, "accept-log");
    rmdir(dir);
}

/* What goes to standard error while it is open lands in the file. */
static int stderr_to(const char *path)
{
    fflush(stderr);
    int saved = dup(STDERR_FILENO), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(saved >= 0 && file >= 0);
    assert_true(dup2(file, STDERR_FILENO) >= 0);
    close(file);
    return saved;
}

static void stderr_back(int saved)
{
    fflush(stderr);
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    close(saved);
}

static void a_full_disk_ends_the_log_and_no_reply(void **state)
{
    (void)state;
    char dir[64], path[96], text[4096];
    uint64_t random = 7;
    kit k;
    make_folder(dir);
    snprintf(path, sizeof path, "%s/stderr", dir);
    int saved = stderr_to(path);
    open_log(&k, "/dev/full");
    bool open_first = k.core.log.file;
    run_replies(&k, &random);
    bool open_still = k.core.log.file;
    stderr_back(saved);
    assert_true(open_first && !open_still);
    for (int i = 0; i < STREAMS; i++) {
        static plain expected;
        plain_reply(&k.ending[i].stream->request, NULL, &expected);
        assert_true(kit_equal(&k.ending[i], &expected));
    }
    kit_close(&k);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    const char *warning = strstr(text, "accept-log");
    assert_non_null(warning); /* once, and it says why */
    assert_non_null(strstr(warning, strerror(ENOSPC)));
    assert_null(strstr(warning + 1, "accept-log"));
    assert_int_equal(strncmp(text, "paceline: warning: ", 19), 0);
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_add_up_to_the_replies),
        cmocka_unit_test(a_log_is_appended_to),
        cmocka_unit_test(a_path_that_cannot_be_opened_is_named),
        cmocka_unit_test(a_full_disk_ends_the_log_and_no_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
