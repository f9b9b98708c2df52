/* paceline bench arms NAME=COMMAND...: servers started by their commands, against each other. */
#include "base/file.h"
#include "bench/arms.h"
#include "cli/bench_plan.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_CAP = 4 << 20 };

/* As main.c's, and the server that runs ends with us: it is in a group of its own and hears no Ctrl-C. */
static void on_end(int signal_number)
{
    pl_bench_server_kill_all();
    pl_file_unlink_temps();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static pl_status on_run(void *arg, const json_t *report, const char *what, pl_error *err)
{
    const pl_settings *settings = arg;
    const char *path = pl_set_text(settings, PL_SET_OUTPUT);
    if (what)
        fprintf(stderr, "%s\n", what);
    return *path ? bench_save(path, report, err) : PL_OK;
}

static pl_status read_arms(const pl_settings *settings, pl_bench_arm *arm, pl_error *err)
{
    for (int i = 0; i < settings->args; i++) {
        PL_TRY(pl_bench_arm_read(&arm[i], settings->arg[i], err));
        for (int j = 0; j < i; j++)
            if (strcmp(arm[i].name, arm[j].name) == 0)
                return pl_fail(err, PL_EINVAL, "two arms are named \"%s\"", arm[i].name);
    }
    return PL_OK;
}

static pl_status tell(const pl_settings *settings, const json_t *report, pl_error *err)
{
    if (pl_set_on(settings, PL_SET_BENCH_JSON))
        return bench_print_json(report, err);
    pl_buf out;
    pl_buf_init(&out, TABLE_CAP, "the table of arms");
    pl_status status = pl_bench_arms_table(report, &out, err);
    if (status == PL_OK)
        status = cmd_print(out.data, out.len, err);
    pl_buf_free(&out);
    return status;
}

int cmd_bench_arms(const pl_settings *s)
{
    pl_error err;
    bench_plan plan = {0};
    pl_bench_arm arm[PL_BENCH_ARMS_MAX];
    json_t *report = NULL;
    pl_bench_verdict worst = PL_BENCH_EQUAL;
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (signal(ends[i], on_end) == SIG_IGN)
            signal(ends[i], SIG_IGN);
    pl_status status = read_arms(s, arm, &err);
    if (status == PL_OK)
        status = bench_plan_open(&plan, s, &err);
    pl_bench_arms a = {.arm = arm,
                       .arms = s->args,
                       .rounds = (int)pl_set_int(s, PL_SET_ROUNDS),
                       .reruns = (int)pl_set_int(s, PL_SET_RERUNS),
                       .ready_s = pl_set_real(s, PL_SET_READY),
                       .grace_s = 30,
                       .quiet_s = pl_set_real(s, PL_SET_QUIET),
                       .limits = {pl_set_real(s, PL_SET_BUSY_LIMIT), pl_set_real(s, PL_SET_CELSIUS_LIMIT)},
                       .compare = pl_set_on(s, PL_SET_COMPARE),
                       .root = "",
                       .key = pl_set_text(s, PL_SET_API_KEY),
                       .model = pl_set_text(s, PL_SET_MODEL_NAME),
                       .plan = plan.plan,
                       .cell = plan.cell,
                       .cells = plan.cells,
                       .saved = on_run,
                       .saved_arg = (void *)s};
    if (status == PL_OK)
        status = pl_bench_arms_run(&a, &report, &worst, &err);
    if (status == PL_OK)
        status = tell(s, report, &err);
    json_decref(report);
    bench_plan_close(&plan);
    return status == PL_OK ? bench_exit(worst) : cmd_fail(s, &err);
}
