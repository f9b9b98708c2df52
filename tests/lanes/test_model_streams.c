/* Streams on real models: drafted, in company, in any schedule, each reply is the one that a plain loop over the
 * forward pass gives. */
#include "lanes/model_target.h"
#include "lanes/schedule.h"
#include "model/support.h"

#include "base/file.h"
#include "text/json_text.h"

/* The same checkpoint twice: for the core, and for the plain loop. */
typedef struct twins {
    fixture both, plain_one;
    pl_model_target *target;
    pl_draft_table drafter; /* the model's, or one that spoils its drafts */
    plain_model plain;
    int32_t held[PAIR_CONTEXT]; /* what the plain model's slot holds */
    int len;
} twins;

static const float *forward(void *arg, const int32_t *token, int n)
{
    twins *t = arg;
    int from = 0;
    while (from < t->len && from < n - 1 && t->held[from] == token[from])
        from++;
    if (from < t->len) { /* another reply: from the beginning, so that no rewind is relied upon */
        pl_model_reset(t->plain_one.model, 0);
        from = 0;
    }
    pl_error err;
    for (int at = from; at < n; at += 64) {
        int rows = n - at < 64 ? n - at : 64;
        pl_run run = {
            .pos = at, .rows = rows, .token = token + at, .want = at + rows == n ? PL_WANT_LAST : PL_WANT_NONE};
        if (pl_model_forward(t->plain_one.model, &run, 1, NULL, NULL, &err) != PL_OK)
            fail_msg("%s", err.message);
    }
    memcpy(t->held, token, (size_t)n * sizeof *token);
    t->len = n;
    return pl_model_logits(t->plain_one.model, 0);
}

static void open_twins(twins *t, const char *dir, int slots)
{
    pl_error err;
    memset(t, 0, sizeof *t);
    open_fixture(&t->both, dir, (pl_model_settings){.threads = 1, .slots = slots, .context = PAIR_CONTEXT});
    open_fixture(&t->plain_one, dir, (pl_model_settings){.threads = 1, .slots = 1, .context = PAIR_CONTEXT});
    assert_int_equal(pl_model_target_open(&t->target, t->both.model, &err), PL_OK);
    t->drafter = *pl_model_target_drafter(t->target);
    plain_open(&t->plain, forward, t, pl_model_config(t->both.model)->vocab_size);
}

static void close_twins(twins *t)
{
    plain_close(&t->plain);
    pl_model_target_close(t->target);
    close_fixture(&t->both);
    close_fixture(&t->plain_one);
}

/* Spoils the model's own drafts here and there, as a file of wrong drafts would. */
static const twins *spoiled;

static pl_status spoil(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose, void *choose_arg,
                       int32_t *draft, float *confidence, float *margin, pl_error *err)
{
    const pl_draft_table *real = pl_model_target_drafter(spoiled->target);
    PL_TRY(real->propose(arg, ask, asks, choose, choose_arg, draft, confidence, margin, err));
    for (int i = 0; i < asks * real->block; i++)
        if (below(4) == 0) {
            draft[i] = below(spoiled->plain.vocab + 1) - below(2);
            confidence[i] = below(9) ? 6 * some() - 3 : NAN;
        }
    return PL_OK;
}

static uint64_t drafted, accepted;
static twins small;

static void run_small(uint64_t seed)
{
    static kit k;
    state = seed;
    int n = 1 + below(below(3) ? 5 : 12), steps = 1 + below(60);
    pl_core_settings settings = any_settings();
    pl_target target = *pl_model_target_table(small.target);
    target.slots = 1 + below(target.slots);
    target.piece = 1 + below(target.piece);
    pl_draft_table drafter = small.drafter;
    if (below(2))
        drafter.propose = spoil;
    kit_open_on(&k, &target, &drafter, &settings);
    run_streams(&k, &small.plain, n, steps, seed);
    kit_close(&k);
}

/* Sanitized builds are five to twenty times slower. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SMALL_SCHEDULES = 40, TOKENS = 16, MOST_STREAMS = 4 };
#else
enum { SMALL_SCHEDULES = 1000, TOKENS = 48, MOST_STREAMS = 9 };
#endif

static void schedules_on_a_small_model(void **unused)
{
    (void)unused;
    char dir[64];
    pl_error err;
    pl_buf config;
    make_folder(dir);
    pl_buf_init(&config, 1 << 20, "config");
    assert_int_equal(pl_file_read(&config, "tests/checkpoint/small.json", &err), PL_OK);
    make_checkpoint(dir, config.data, config.len, "small", 5);
    pl_buf_free(&config);
    open_twins(&small, dir, 12);
    spoiled = &small;
    run_schedules(run_small, SMALL_SCHEDULES);
    close_twins(&small);
    remove_folder(dir);
}

typedef struct prompt {
    int32_t id[256];
    size_t len;
} prompt;

/* Greedy; sampled in two ways; with penalties. Some with logprobs, a stop check, drafts declined. */
static pl_request request_of(const prompt *p, int kind)
{
    pl_request q = kit_request(p->id, p->len, TOKENS);
    pl_sampling *s = &q.sampling;
    s->seed = 1000 + (uint64_t)kind;
    if (kind % 4 == 1)
        s->temperature = 1;
    if (kind % 4 == 2)
        *s = (pl_sampling){.temperature = 0.7f, .top_k = 40, .top_p = 0.9f, .min_p = 0.02f, .repetition_penalty = 1};
    if (kind % 4 == 3)
        *s = (pl_sampling){.top_p = 1, .repetition_penalty = 1.3f, .frequency_penalty = 0.4f, .presence_penalty = 0.2f};
    q.top_logprobs = kind % 3 ? -1 : 5;
    q.draft = kind % 7 != 6;
    return q;
}

/* n replies that begin some steps apart, each drafted as far as it may be. */
static void staggered(twins *t, const prompt *prompts, int count, int n, int kind)
{
    static kit k;
    static int sums[16];
    pl_core_settings settings = {.drafts = true, .plain_streams = 0, .joint = 1, .decode_share = 0.5, .fixed_depth = 5};
    pl_request q[16];
    kit_open_on(&k, pl_model_target_table(t->target), &t->drafter, &settings);
    for (int i = 0; i < n; i++) {
        sums[i] = 0;
        q[i] = request_of(&prompts[(i + kind) % count], i + kind);
        q[i].stop = i % 5 == 4 ? stops : NULL;
        q[i].stop_arg = &sums[i];
        kit_admit(&k, kit_stream(&k, &q[i]));
        for (int step = 0; step < 3; step++)
            kit_step(&k);
    }
    kit_run(&k);
    for (int i = 0; i < n; i++) {
        static plain expected;
        int sum = 0;
        plain_reply_of(&t->plain, &q[i], &sum, &expected);
        if (!kit_equal(&k.ending[i], &expected))
            fail_msg("reply %d of %d, kind %d, differs", i, n, i + kind);
    }
    drafted += k.core.totals.numbers.drafted;
    accepted += k.core.totals.numbers.accepted;
    kit_close(&k);
}

/* Drafts out of a file: the reply as it will be, with wrong tokens among it. */
static struct {
    FILE *file; /* int32 a token of the reply */
    int prompt;
    const twins *twins;
} injected;

static pl_status inject(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose, void *choose_arg,
                        int32_t *draft, float *confidence, float *margin, pl_error *err)
{
    (void)arg, (void)choose, (void)choose_arg, (void)err;
    int block = injected.twins->drafter.block;
    assert_int_equal(asks, 1);
    /* The anchor stands behind what is kept, the first draft behind the anchor. */
    long first = pl_drafter_count(injected.twins->both.model, ask->slot) + 1 - injected.prompt;
    assert_int_equal(fseek(injected.file, first * (long)sizeof *draft, SEEK_SET), 0);
    size_t got = fread(draft, sizeof *draft, (size_t)block, injected.file);
    for (int i = 0; i < block; i++) {
        draft[i] = i < (int)got ? draft[i] : -1;
        confidence[i] = margin[i] = 1;
    }
    return PL_OK;
}

static void drafts_from_a_file(twins *t, const prompt *p)
{
    static kit k;
    static plain expected;
    pl_core_settings settings = {.drafts = true, .joint = 1, .fixed_depth = 5};
    for (int kind = 0; kind < 4; kind++) {
        pl_request q = request_of(p, kind);
        plain_reply_of(&t->plain, &q, NULL, &expected);
        injected.file = tmpfile();
        injected.prompt = (int)p->len;
        injected.twins = t;
        assert_non_null(injected.file);
        for (size_t i = 0; i < expected.count; i++) {
            int32_t id = expected.token[i];
            if (i % 4 == 2) /* any other token */
                id = (id + 1 + below(t->plain.vocab - 1)) % t->plain.vocab;
            assert_int_equal(fwrite(&id, sizeof id, 1, injected.file), 1);
        }
        pl_draft_table table = t->drafter;
        table.propose = inject;
        kit_open_on(&k, pl_model_target_table(t->target), &table, &settings);
        kit_admit(&k, kit_stream(&k, &q));
        kit_run(&k);
        assert_true(kit_equal(&k.ending[0], &expected));
        const pl_numbers *n = &k.ending[0].outcome.numbers;
        assert_true(n->accepted > 0 && n->accepted < n->drafted); /* right ones and wrong ones were met */
        kit_close(&k);
        fclose(injected.file);
    }
}

static void streams_on(const char *dir, const prompt *prompts, int count)
{
    static twins t;
    open_twins(&t, dir, MOST_STREAMS);
    drafted = accepted = 0;
    for (int n = 1; n <= MOST_STREAMS; n++)
        staggered(&t, prompts, count, n, n);
    print_message("%llu drafts verified, %llu kept\n", (unsigned long long)drafted, (unsigned long long)accepted);
    assert_true(accepted > 0);
    drafts_from_a_file(&t, &prompts[0]);
    spoiled = &t;
    t.drafter.propose = spoil;
    staggered(&t, prompts, count, MOST_STREAMS / 2, 0);
    close_twins(&t);
}

static void streams_on_tiny(void **unused)
{
    (void)unused;
    static const char *const names[] = {"p0", "p1", "p2", "p3"};
    prompt prompts[4] = {0};
    for (int i = 0; i < 4; i++) {
        int count;
        int32_t *ids = load_prompt(names[i], &count);
        prompts[i].len = count < 200 ? (size_t)count : 200;
        memcpy(prompts[i].id, ids, prompts[i].len * sizeof *ids);
        free(ids);
    }
    streams_on(TINY "model", prompts, 4);
}

static void streams_on_nano(void **unused)
{
    (void)unused;
    static const char *const names[] = {"chat_harbour", "code_factorial", "turns"};
    prompt prompts[3] = {0};
    pl_error err;
    pl_buf text;
    pl_json_doc *cases;
    pl_buf_init(&text, 1 << 20, "cases");
    assert_int_equal(pl_file_read(&text, "tests/vectors/nano/cases.json", &err), PL_OK);
    assert_int_equal(pl_json_parse(text.data, text.len, NULL, &cases, &err), PL_OK);
    for (int i = 0; i < 3; i++) {
        const pl_json *ids = pl_json_get(pl_json_get(pl_json_root(cases), names[i]), "ids");
        for (pl_json_iter it = {0}; pl_json_each(ids, &it) && prompts[i].len < 256;) {
            int64_t id;
            assert_true(pl_json_i64(it.value, 0, INT32_MAX, &id));
            prompts[i].id[prompts[i].len++] = (int32_t)id;
        }
        assert_true(prompts[i].len > 0);
    }
    pl_json_free(cases);
    pl_buf_free(&text);
    streams_on(NANO, prompts, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_on_a_small_model),
        cmocka_unit_test(streams_on_tiny),
        cmocka_unit_test(streams_on_nano),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
