/* What the core itself takes of a round: not a test, a measurement (docs/ledger.md). The target and the drafter do
 * nothing and draw from one row of 64 logits, so what is timed is choosing, drafting, drawing, committing and keeping
 * books. Prints JSON: microseconds a round and stream. */
#include "base/clock.h"
#include "lanes/core_kit.h"

enum { ROUNDS = 20000, TOKENS = 400 };

static float row[PAIR_VOCAB];

static const float *same_row(void *arg, int i)
{
    (void)arg, (void)i;
    return row;
}

static pl_status same_drafts(void *arg, const pl_draft_ask *ask, int asks, pl_draft_choose *choose, void *choose_arg,
                             int32_t *draft, float *confidence, float *margin, pl_error *err)
{
    (void)arg, (void)ask, (void)choose, (void)choose_arg, (void)err;
    for (int i = 0; i < asks * PAIR_BLOCK; i++) {
        draft[i] = 7;
        confidence[i] = 2;
        margin[i] = 1;
    }
    return PL_OK;
}

static double measure(int streams, int depth, float temperature)
{
    static kit k;
    static int32_t prompt[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    pl_core_settings settings = {.drafts = depth > 0, .joint = 1, .fixed_depth = depth};
    kit_open(&k, streams, PAIR_ROWS, &settings);
    k.core.target.logits = same_row;
    k.core.drafter.propose = same_drafts;
    int64_t ns = 0;
    uint64_t windows = 0;
    while (windows < ROUNDS) {
        k.endings = 0;
        pl_stream *made[PAIR_SLOTS];
        for (int i = 0; i < streams; i++) {
            pl_request q = kit_request(prompt, 8, TOKENS);
            q.sampling.temperature = temperature;
            q.sampling.top_k = 20;
            made[i] = kit_stream(&k, &q);
            kit_admit(&k, made[i]);
        }
        while (k.core.prompts)
            kit_step(&k);
        uint64_t before = k.core.totals.numbers.rounds;
        int64_t began = pl_now_ns();
        while (pl__core_busy(&k.core))
            kit_step(&k);
        ns += pl_now_ns() - began;
        windows += k.core.totals.numbers.rounds - before;
        for (int i = 0; i < streams; i++)
            pl__stream_discard(made[i]);
    }
    k.endings = 0;
    pl__core_close(&k.core);
    return (double)ns * 1e-3 / (double)windows;
}

int main(void)
{
    row[7] = 9;
    static const int streams[] = {1, 2, 4, 8, 32};
    printf("{\n  \"what\": \"microseconds of the core a round and stream; target and drafter do nothing, 61 logits\",\n"
           "  \"cells\": [\n");
    for (int i = 0; i < 5; i++)
        for (int depth = 0; depth <= 5; depth += 5)
            for (int sampled = 0; sampled < 2; sampled++)
                printf("    {\"streams\": %d, \"depth\": %d, \"sampled\": %s, \"us\": %.3f}%s\n", streams[i], depth,
                       sampled ? "true" : "false", measure(streams[i], depth, sampled ? 1 : 0),
                       i == 4 && depth && sampled ? "" : ",");
    printf("  ]\n}\n");
    return 0;
}
