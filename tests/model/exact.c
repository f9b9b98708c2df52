/* See exact.h. */
#include "model/exact.h"

static const char *const isas[] = {"scalar", "avx2", "avx512", "neon"};

typedef struct sample {
    const char *dir;
    int32_t *tokens;
    int count;
    size_t v;
    float *want;          /* [count][V], whole prefill, one thread */
    pl_proposal proposal; /* behind the whole, one thread; zero without a drafter */
} sample;

static fixture f;
static uint64_t *seed;

static void expect(const sample *s, int pos, const float *row, const char *how)
{
    if (memcmp(row, s->want + (size_t)pos * s->v, s->v * sizeof *row) != 0)
        fail_msg("%s: position %d differs when run %s", s->dir, pos, how);
}

static void forward(pl_run run)
{
    pl_error err;
    if (pl_model_forward(f.model, &run, 1, NULL, NULL, &err) != PL_OK)
        fail_msg("%s", err.message);
}

static void whole(const sample *s, const char *how)
{
    float *all = malloc(sizeof *all * (size_t)s->count * s->v);
    pl_model_reset(f.model, 0);
    run_rows(f.model, s->tokens, 0, s->count, all);
    for (int i = 0; i < s->count; i++)
        expect(s, i, all + (size_t)i * s->v, how);
    free(all);
}

static void random_pieces(const sample *s)
{
    pl_model_reset(f.model, 0);
    for (int at = 0; at < s->count;) {
        int rows = 1 + (int)(next_random(seed) % 40);
        rows = rows < s->count - at ? rows : s->count - at;
        forward((pl_run){.pos = at, .rows = rows, .token = s->tokens + at, .want = PL_WANT_ALL});
        for (int r = 0; r < rows; r++)
            expect(s, at + r, pl_model_logits(f.model, r), "in random pieces");
        at += rows;
    }
}

static void single_tokens(const sample *s)
{
    pl_model_reset(f.model, 0);
    for (int at = 0; at < s->count; at++) {
        forward((pl_run){.pos = at, .rows = 1, .token = s->tokens + at, .want = PL_WANT_LAST});
        expect(s, at, pl_model_logits(f.model, 0), "token by token");
    }
}

/* Windows of up to 16 rows: the first `keep` hold the true tokens, the rest are wrong and thrown away. */
static void windows_with_wrong_rows(const sample *s)
{
    pl_model_reset(f.model, 0);
    for (int at = 0; at < s->count;) {
        int32_t window[PL_WINDOW_ROWS];
        int rows = 1 + (int)(next_random(seed) % PL_WINDOW_ROWS), keep = 1 + (int)(next_random(seed) % (uint32_t)rows);
        rows = rows < s->count - at ? rows : s->count - at;
        keep = keep < rows ? keep : rows;
        for (int r = 0; r < rows; r++)
            window[r] = r < keep ? s->tokens[at + r] : (int32_t)(next_random(seed) % (uint32_t)s->v);
        forward((pl_run){.pos = at, .rows = rows, .token = window, .want = PL_WANT_ALL});
        for (int r = 0; r < keep; r++)
            expect(s, at + r, pl_model_logits(f.model, r), "in windows with wrong rows");
        at += keep;
    }
}

/* The block that the drafter proposes behind the last token; all tokens must be held. */
static pl_proposal propose(void)
{
    pl_error err;
    pl_proposal out = {0};
    int slot = 0, count = pl_model_len(f.model, 0);
    if (!pl_drafter_present(f.model))
        return out;
    pl_ask ask = {.slot = 0, .anchor = 3};
    if (pl_drafter_ingest(f.model, &slot, &count, 1, &err) != PL_OK ||
        pl_drafter_propose(f.model, &ask, 1, NULL, NULL, &out, &err) != PL_OK)
        fail_msg("%s", err.message);
    return out;
}

static void same_proposal(const sample *s, const char *how)
{
    pl_proposal got = propose();
    if (memcmp(&got, &s->proposal, sizeof got) != 0)
        fail_msg("%s: the drafter proposes otherwise when run %s", s->dir, how);
}

/* Three slots at different places of the same text, in shared launches of odd sizes. */
static void beside_others(const sample *s)
{
    enum { SLOTS = 3 };
    int at[SLOTS] = {0, 0, 0};
    for (int i = 0; i < SLOTS; i++)
        pl_model_reset(f.model, i);
    for (;;) {
        pl_run run[SLOTS];
        pl_error err;
        int runs = 0, row = 0;
        for (int i = 0; i < SLOTS; i++) {
            int rows = (int)(next_random(seed) % 7);
            rows = rows < s->count - at[i] ? rows : s->count - at[i];
            if (rows)
                run[runs++] = (pl_run){i, at[i], rows, s->tokens + at[i], PL_WANT_ALL};
        }
        if (!runs && at[0] + at[1] + at[2] == SLOTS * s->count)
            return;
        if (!runs)
            continue;
        if (pl_model_forward(f.model, run, runs, NULL, NULL, &err) != PL_OK)
            fail_msg("%s", err.message);
        for (int i = 0; i < runs; i++)
            for (int r = 0; r < run[i].rows; r++)
                expect(s, run[i].pos + r, pl_model_logits(f.model, row++), "beside other slots");
        for (int i = 0; i < runs; i++)
            at[run[i].slot] += run[i].rows;
    }
}

void check_exact(const char *dir, const int32_t *tokens, int count, uint64_t *random)
{
    seed = random;
    pl_model_settings one = {.threads = 1, .slots = 3, .context = count + 16, .piece = 512};
    open_fixture(&f, dir, one);
    sample s = {.dir = dir, .count = count, .v = (size_t)pl_model_config(f.model)->vocab_size};
    s.tokens = malloc(sizeof *tokens * (size_t)count);
    memcpy(s.tokens, tokens, sizeof *tokens * (size_t)count);
    s.want = malloc(sizeof *s.want * (size_t)count * s.v);
    run_rows(f.model, tokens, 0, count, s.want);

    s.proposal = propose();
    whole(&s, "again");
    same_proposal(&s, "again");
    random_pieces(&s);
    same_proposal(&s, "in random pieces");
    single_tokens(&s);
    same_proposal(&s, "token by token");
    windows_with_wrong_rows(&s);
    same_proposal(&s, "in windows with wrong rows");
    beside_others(&s);
    for (int threads = 2; threads <= 3; threads++) {
        pl_model_settings more = one;
        more.threads = threads;
        reopen_model(&f, more);
        whole(&s, threads == 2 ? "on 2 threads" : "on 3 threads");
        random_pieces(&s);
    }
    int ran = 0;
    for (size_t i = 0; i < sizeof isas / sizeof *isas; i++) {
        pl_model_settings other = one;
        other.isa = isas[i];
        other.threads = 2;
        pl_model *probe;
        if (pl_model_open(&probe, f.checkpoint, f.token_map, &other, NULL) != PL_OK)
            continue; /* not an instruction set of this machine */
        pl_model_close(probe);
        reopen_model(&f, other);
        whole(&s, isas[i]);
        same_proposal(&s, isas[i]);
        random_pieces(&s);
        single_tokens(&s);
        ran++;
    }
    print_message("%s: %d instruction sets\n", dir, ran);
    assert_true(ran >= 1);
    free(s.tokens), free(s.want);
    close_fixture(&f);
}
