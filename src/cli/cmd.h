/* The commands. One file each, src/cli/cmd_NAME.c, with `int cmd_NAME(const pl_settings *settings)`; the build finds
 * them by name. Settings arrive checked. */
#ifndef PL_CLI_CMD_H
#define PL_CLI_CMD_H

#include "base/settings.h"

/* What a command returns; main exits with it. */
enum {
    CMD_OK = 0,
    CMD_FAILED = 1,       /* said why on standard error */
    CMD_USAGE = 2,        /* the request itself was wrong */
    CMD_UNVERIFIED = 3,   /* bench: all went well, but a server does not say which tokens it made */
    CMD_INTERRUPTED = 130 /* Ctrl-C */
};

typedef int cmd_fn(const pl_settings *settings);

cmd_fn cmd_serve, cmd_run, cmd_inspect, cmd_synth, cmd_tokenize, cmd_logits, cmd_trace, cmd_drafts, cmd_bench;
cmd_fn cmd_bench_concurrent, cmd_bench_arms; /* words of cmd_bench; the first is `bench openai`, too */

/* Print "paceline NAME: MESSAGE" on standard error; the exit code that fits err (CMD_USAGE for PL_EINVAL). */
int cmd_fail(const pl_settings *settings, const pl_error *err);

/* The checkpoint folder that -m names, or the embedded model's: looked for beside and above the program, then in the
 * install prefix's share/paceline, then in the working folder. Fresh memory (free with free). PL_ENOTFOUND. */
pl_status cmd_model_dir(const pl_settings *settings, char **dir, pl_error *err);

/* `name` ("bench/prompts.json") looked for in the same places. Fresh memory (free with free). PL_ENOTFOUND. */
pl_status cmd_shared_file(const char *name, char **path, pl_error *err);

/* --threads, with "auto" made a number. */
int cmd_threads(const pl_settings *settings);

/* --effort as a number: low 50, high 75, max 100, or 1..100 itself. PL_EINVAL. */
pl_status cmd_effort(const pl_settings *settings, int *effort, pl_error *err);

/* Write the buffer to standard output and flush; PL_EIO when it cannot be (a full disk, a closed pipe). */
pl_status cmd_print(const char *bytes, size_t n, pl_error *err);

#endif
