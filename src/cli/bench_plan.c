/* See bench_plan.h. */
#include "cli/bench_plan.h"

#include "base/file.h"
#include "base/num.h"

#include <stdlib.h>
#include <string.h>

enum { WORD = 128, STAGGER_MAX_S = 30 };

/* The parts of a list separated by commas, without blanks around them; -1 when one is empty or too long, or there are
 * too many. */
static int split(const char *text, char part[BENCH_LIST_MAX][WORD])
{
    int n = 0;
    for (const char *at = text;; at++) {
        at += strspn(at, " ");
        size_t len = strcspn(at, ",");
        const char *next = at + len;
        while (len && at[len - 1] == ' ')
            len--;
        if (n == BENCH_LIST_MAX || len == 0 || len >= WORD)
            return -1;
        memcpy(part[n], at, len);
        part[n++][len] = '\0';
        if (!*next)
            return n;
        at = next;
    }
}

static pl_status refuse(const char *name, const char *expected, const char *found, pl_error *err)
{
    return pl_fail_param(err, PL_EINVAL, name, "--%s: %s expected, found \"%.60s\"", name, expected, found);
}

static pl_status read_levels(const pl_settings *s, int level[BENCH_LIST_MAX], int *n, pl_error *err)
{
    char part[BENCH_LIST_MAX][WORD];
    const char *text = pl_set_text(s, PL_SET_LEVELS);
    *n = 1;
    level[0] = 1;
    if (s->command->bit == PL_CMD_BENCH_OPENAI)
        return PL_OK;
    *n = split(text, part);
    for (int i = 0; i < *n; i++) {
        int64_t value;
        if (!pl_parse_i64(part[i], 1, PL_BENCH_STREAMS_MAX, &value))
            *n = -1;
        else
            level[i] = (int)value;
    }
    return *n > 0 ? PL_OK : refuse("levels", "numbers from 1 to 512, separated by commas,", text, err);
}

static pl_status read_temperatures(const pl_settings *s, double *temperature, int *n, pl_error *err)
{
    char part[BENCH_LIST_MAX][WORD];
    const char *text = pl_set_text(s, PL_SET_TEMPERATURES);
    int count = split(text, part);
    *n = 0;
    for (int i = 0; i < count; i++) {
        double value;
        if (!pl_parse_f64(part[i], 0, 2, &value))
            return refuse("temperatures", "numbers from 0 to 2, separated by commas,", text, err);
        if (value > 0 || !pl_set_on(s, PL_SET_MIXED))
            temperature[(*n)++] = value;
    }
    if (count < 0)
        return refuse("temperatures", "numbers from 0 to 2, separated by commas,", text, err);
    return *n ? PL_OK : refuse("temperatures", "with --mixed: one above 0", text, err);
}

/* --prompts, else every group, or for `bench openai` every prompt by its name. */
static pl_status choose_sets(bench_plan *p, const pl_settings *s, pl_error *err)
{
    char part[BENCH_LIST_MAX][WORD];
    bool given = pl_set_given(s, PL_SET_PROMPTS), singles = s->command->bit == PL_CMD_BENCH_OPENAI;
    const char *text = pl_set_text(s, PL_SET_PROMPTS);
    int n = given ? split(text, part) : p->prompts.sets, count = 0;
    pl_bench_set *chosen = calloc(PL_BENCH_SETS_MAX, sizeof *chosen);
    if (!chosen)
        return pl_fail(err, PL_ENOMEM, "no memory for the prompts");
    for (int i = 0; i < n; i++) {
        if (given && !pl_bench_prompts_find(&p->prompts, part[i], &chosen[i]))
            n = -1;
        else if (!given)
            chosen[i] = p->prompts.set[i];
        count += n < 0 ? 0 : chosen[i].n;
    }
    if (n < 0) {
        free(chosen);
        return refuse("prompts", "groups or names of the prompt file, separated by commas,", text, err);
    }
    p->set = chosen;
    p->sets = n;
    if (!singles)
        return PL_OK;
    p->set = calloc((size_t)count, sizeof *p->set);
    p->sets = 0;
    for (int i = 0; p->set && i < n; i++)
        for (int j = 0; j < chosen[i].n; j++)
            p->set[p->sets++] =
                (pl_bench_set){.name = chosen[i].prompt[j].name, .prompt = {chosen[i].prompt[j]}, .n = 1};
    free(chosen);
    return p->set ? PL_OK : pl_fail(err, PL_ENOMEM, "no memory for the prompts");
}

static pl_status make_cells(bench_plan *p, const pl_settings *s, pl_error *err)
{
    int level[BENCH_LIST_MAX], levels, temperatures;
    double temperature[BENCH_LIST_MAX];
    bool mixed = pl_set_on(s, PL_SET_MIXED);
    PL_TRY(read_levels(s, level, &levels, err));
    PL_TRY(read_temperatures(s, temperature, &temperatures, err));
    /* Connections are made before the first request, and servers close those that stay silent. */
    for (int l = 0; l < levels; l++)
        if (p->plan.stagger_s * (level[l] - 1) > STAGGER_MAX_S)
            return refuse("stagger-ms", "all streams of a cell started within 30 seconds",
                          pl_set_text(s, PL_SET_STAGGER_MS), err);
    int groups = mixed ? 1 : p->sets;
    if (groups * levels * temperatures > BENCH_CELLS_MAX)
        return pl_fail(err, PL_EINVAL, "%d cells are asked for, %d at most", groups * levels * temperatures,
                       BENCH_CELLS_MAX);
    p->cell = calloc((size_t)(groups * levels * temperatures), sizeof *p->cell);
    if (!p->cell)
        return pl_fail(err, PL_ENOMEM, "no memory for the cells");
    for (int g = 0; g < groups; g++)
        for (int t = 0; t < temperatures; t++)
            for (int l = 0; l < levels; l++)
                p->cell[p->cells++] = (pl_bench_cell){.set = &p->set[g],
                                                      .sets = mixed ? p->sets : 1,
                                                      .name = mixed ? "mixed" : p->set[g].name,
                                                      .temperature = temperature[t],
                                                      .streams = level[l]};
    return PL_OK;
}

pl_status bench_plan_open(bench_plan *p, const pl_settings *s, pl_error *err)
{
    bool lone = s->command->bit == PL_CMD_BENCH_OPENAI;
    *p = (bench_plan){0};
    p->plan = (pl_bench_plan){.label = pl_set_text(s, PL_SET_LABEL),
                              .tokens = (int)pl_set_int(s, PL_SET_BENCH_TOKENS),
                              .reps = (int)pl_set_int(s, PL_SET_REPS),
                              .seed = pl_set_int(s, PL_SET_BENCH_SEED),
                              .seeded = !pl_set_on(s, PL_SET_NO_SEED),
                              .alone = pl_set_on(s, PL_SET_ALONE) || pl_set_on(s, PL_SET_SERIAL),
                              .serial = pl_set_on(s, PL_SET_SERIAL),
                              .stagger_s = pl_set_real(s, PL_SET_STAGGER_MS) * 1e-3,
                              .limit_s = pl_set_real(s, PL_SET_TIMEOUT)};
    p->plan.tokens = p->plan.tokens ? p->plan.tokens : lone ? 64 : 256;
    p->plan.reps = p->plan.reps ? p->plan.reps : lone ? 5 : 3;
    char *path = NULL;
    const char *given = pl_set_text(s, PL_SET_PROMPT_FILE);
    if (!*given)
        PL_TRY(cmd_shared_file("bench/prompts.json", &path, err));
    pl_status status = pl_bench_prompts_read(&p->prompts, path ? path : given, err);
    free(path);
    PL_TRY(status);
    PL_TRY(choose_sets(p, s, err));
    return make_cells(p, s, err);
}

void bench_plan_close(bench_plan *p)
{
    pl_bench_prompts_free(&p->prompts);
    free(p->set);
    free(p->cell);
    *p = (bench_plan){0};
}

static pl_status dump(const json_t *json, size_t flags, const char *path, pl_error *err)
{
    char *text = json_dumps(json, flags);
    if (!text)
        return pl_fail(err, PL_ENOMEM, "no memory for the JSON of the results");
    size_t n = strlen(text);
    text[n] = '\n'; /* in place of the NUL */
    pl_status status = path ? pl_file_put(path, text, n + 1, err) : cmd_print(text, n + 1, err);
    free(text);
    return status;
}

pl_status bench_save(const char *path, const json_t *json, pl_error *err)
{
    return dump(json, JSON_INDENT(1) | JSON_REAL_PRECISION(9), path, err);
}

pl_status bench_print_json(const json_t *json, pl_error *err)
{
    return dump(json, JSON_REAL_PRECISION(9), NULL, err);
}

int bench_exit(pl_bench_verdict worst)
{
    return worst >= PL_BENCH_FAILED ? CMD_FAILED : worst == PL_BENCH_UNVERIFIED ? CMD_UNVERIFIED : CMD_OK;
}
