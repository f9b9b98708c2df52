/* The settings of the bench clients, made into cells: what concurrent, openai and arms share. */
#ifndef PL_CLI_BENCH_PLAN_H
#define PL_CLI_BENCH_PLAN_H

#include "bench/cell.h"
#include "cli/cmd.h"

enum { BENCH_LIST_MAX = 32, BENCH_CELLS_MAX = 1024 };

typedef struct bench_plan {
    pl_bench_prompts prompts;
    pl_bench_set *set; /* [sets] those asked for */
    int sets;
    pl_bench_cell *cell; /* [cells] in the order prompts, temperatures, levels */
    int cells;
    pl_bench_plan plan; /* url and model are not set here */
} bench_plan;

/* PL_EINVAL naming the setting, else what reading the prompts gave. Close it in any case. */
pl_status bench_plan_open(bench_plan *p, const pl_settings *settings, pl_error *err);
void bench_plan_close(bench_plan *p);

/* Write JSON to a file, indented, with a newline at its end. */
pl_status bench_save(const char *path, const json_t *json, pl_error *err);
/* Print JSON on one line of standard output. */
pl_status bench_print_json(const json_t *json, pl_error *err);

/* The exit code of a bench whose worst cell this was. */
int bench_exit(pl_bench_verdict worst);

#endif
