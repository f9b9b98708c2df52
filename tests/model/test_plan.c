/* The plan: release figures, settings that contradict the config, and what opening a model really takes. */
#include "model/support.h"

#include "checkpoint/inventory.h"
#include "model/internal.h"
#include "model/plan.h"

#include <malloc.h>
#include <stdio.h>

static void a_token_of_the_release_costs_890_bytes(void **state)
{
    (void)state;
    pl_config config;
    pl_error err;
    pl_plan plan;
    pl_model_settings s = {.threads = 2, .slots = 1, .context = 1 << 20};
    assert_int_equal(pl_config_load(&config, "tests/vectors/release/config.json", &err), PL_OK);
    assert_int_equal(pl_model_settings_resolve(&s, &config, &err), PL_OK);
    assert_int_equal(pl_model_plan(&plan, &config, &s, &err), PL_OK);
    assert_int_equal(plan.token_bytes, 890);
    assert_true(plan.state_slot > 890ull << 20);
    assert_true(plan.state_slot < (890ull << 20) + (64 << 20)); /* rings, pairs, taps and ids beside the pages */
    assert_true(plan.resident == plan.state + plan.activations + plan.logits + plan.weights_copied + plan.scratch);

    pl_model_settings two = {.threads = 2, .slots = 2, .context = 1 << 20};
    pl_plan doubled;
    assert_int_equal(pl_model_settings_resolve(&two, &config, &err), PL_OK);
    assert_int_equal(pl_model_plan(&doubled, &config, &two, &err), PL_OK);
    assert_true(doubled.state >= 2 * plan.state - 4096 && doubled.state <= 2 * plan.state + 4096);
}

static void contradictions_name_the_setting(void **state)
{
    (void)state;
    pl_config config;
    pl_error err;
    assert_int_equal(pl_config_load(&config, "models/nano/config.json", &err), PL_OK);
    const struct {
        pl_model_settings s;
        const char *name;
    } bad[] = {
        {{.context = config.max_positions + 1}, "context"},
        {{.context = -1}, "context"},
        {{.slots = -3}, "slots"},
        {{.threads = 5000}, "threads"},
        {{.piece = -1}, "piece"},
        {{.rows = 3}, "rows"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pl_model_settings s = bad[i].s;
        assert_fails(PL_EINVAL, &err, pl_model_settings_resolve(&s, &config, &err));
        assert_string_equal(err.param, bad[i].name);
    }
}

/* Every matrix that goes through `lin` fits the limits that scratch is planned from. hc_*_fn has an operation of its
 * own, and the confidence head is run as two matrices of hidden and Markov columns. */
static pl_status within_limits(void *arg, const pl_item *item, pl_error *err)
{
    (void)err;
    const pl_kernel_limits *limits = arg;
    bool matrix = item->role == PL_ROLE_MATRIX && item->part != PL_PART_VISION;
    if (!matrix || item->dtype == PL_F32 || strstr(item->name, "confidence_head"))
        return PL_OK;
    if (item->in > limits->max_in || item->dim[0] > limits->max_out)
        fail_msg("%s: %lld x %d, planned for %d x %d", item->name, (long long)item->dim[0], item->in, limits->max_out,
                 limits->max_in);
    return PL_OK;
}

static void scratch_is_planned_for_every_matrix(void **state)
{
    (void)state;
    pl_config config;
    pl_error err;
    assert_int_equal(pl_config_load(&config, "models/nano/config.json", &err), PL_OK);
    /* each the widest of the model in turn, as no usual shape has it */
    int *const field[] = {&config.markov_rank, &config.draft_experts, &config.experts, &config.index_heads,
                          &config.moe_inter,   &config.q_lora,        &config.o_lora,  &config.head_dim};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        int kept = *field[i];
        pl_model_settings s = {.threads = 2, .context = 64};
        *field[i] = 8192 + 32;
        assert_int_equal(pl_model_settings_resolve(&s, &config, &err), PL_OK);
        pl_kernel_limits limits = pl__model_limits(&config, &s);
        assert_int_equal(pl_inventory_each(&config, within_limits, &limits, &err), PL_OK);
        *field[i] = kept;
    }
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static long anonymous_kb(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[256];
    long kb = -1;
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "RssAnon: %ld kB", &kb) == 1)
            break;
    fclose(file);
    assert_true(kb >= 0);
    return kb;
}

/* Opening reserves what the plan says, and a full slot takes no more. */
static void resident_memory_is_the_plan(void **state)
{
    (void)state;
    if (SANITIZED)
        skip(); /* a sanitizer's own memory would be counted */
    pl_error err;
    fixture f;
    pl_plan plan;
    pl_model_settings s = {.threads = 2, .slots = 2, .context = 4096};
    open_checkpoint(&f, NANO); /* no model has been opened in this process: freed memory would blur the figure */
    assert_int_equal(pl_model_settings_resolve(&s, pl_checkpoint_config(f.checkpoint), &err), PL_OK);
    assert_int_equal(pl_model_plan(&plan, pl_checkpoint_config(f.checkpoint), &s, &err), PL_OK);
    malloc_trim(0); /* what the tokenizer gave back would otherwise be used again unseen */
    long before = anonymous_kb();
    reopen_model(&f, s);
    long opened = anonymous_kb() - before;
    int32_t *tokens = calloc(600, sizeof *tokens);
    run_rows(f.model, tokens, 0, 600, NULL);
    free(tokens);
    long used = anonymous_kb() - before;
    print_message("plan %.0f kB, opened %ld kB, after a prompt %ld kB\n", (double)plan.resident / 1024, opened, used);
    assert_true(opened < 1.05 * (double)plan.resident / 1024);
    assert_true(used < 1.05 * (double)plan.resident / 1024);
    assert_true(used > 0.95 * (double)plan.resident / 1024);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_token_of_the_release_costs_890_bytes),
        cmocka_unit_test(contradictions_name_the_setting),
        cmocka_unit_test(scratch_is_planned_for_every_matrix),
        cmocka_unit_test(resident_memory_is_the_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
